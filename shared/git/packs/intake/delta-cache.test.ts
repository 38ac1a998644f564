import { expect, it } from 'vitest';
import { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';

/** Reserves all that is left, in pieces of 1,000 bytes. Returns how many bytes that were. */
function fill(deltas: DeltaCache): number {
  let reserved = 0;
  while (deltas.reserve(1000) >= 0) reserved += 1000;
  return reserved;
}

it('bounds the memory of all packs of a thread together, and frees it when they are done', () => {
  const [first, second] = [new DeltaCache(), new DeltaCache()];
  const all = fill(first);
  expect(all).toBeGreaterThan(16 * 1024 * 1024);
  expect(all).toBeLessThanOrEqual(32 * 1024 * 1024);
  expect(second.reserve(1000)).toBe(-1);
  first.close();
  first.close();
  expect(fill(second)).toBe(all);
  second.close();
});

it('reserves each delta a range of its own, with one byte more', () => {
  const deltas = new DeltaCache();
  const places = Array.from({ length: 5000 }, (_, i) => ({ at: deltas.reserve(i % 700), size: i % 700 }));
  for (const [i, { at, size }] of places.entries()) {
    const start = deltas.startInPage(at);
    deltas.pageOf(at).fill(i % 251, start, start + size + 1);
  }
  for (const [i, { at, size }] of places.entries()) {
    const start = deltas.startInPage(at);
    expect(deltas.pageOf(at).subarray(start, start + size + 1)).toEqual(Buffer.alloc(size + 1, i % 251));
  }
  expect(deltas.reserve(1024 * 1024)).toBe(-1);
  deltas.close();
});
