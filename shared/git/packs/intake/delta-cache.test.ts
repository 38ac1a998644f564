import { expect, it } from 'vitest';
import { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';

/** How many more bytes are held for one pack. */
function fill(deltas: DeltaCache): number {
  let held = 0;
  while (deltas.place(1000) >= 0) held += 1000;
  return held;
}

it('holds a bounded amount for all packs of a thread together, and has the room again when they are done', () => {
  const [first, second] = [new DeltaCache(), new DeltaCache()];
  const all = fill(first);
  expect(all).toBeGreaterThan(16 * 1024 * 1024);
  expect(all).toBeLessThanOrEqual(32 * 1024 * 1024);
  expect(second.place(1000)).toBe(-1);
  first.close();
  first.close();
  expect(fill(second)).toBe(all);
  second.close();
});

it('keeps each delta in a place of its own, with a byte to spare', () => {
  const deltas = new DeltaCache();
  const places = Array.from({ length: 5000 }, (_, i) => ({ at: deltas.place(i % 700), size: i % 700 }));
  for (const [i, { at, size }] of places.entries()) {
    const start = deltas.startInPage(at);
    deltas.pageOf(at).fill(i % 251, start, start + size + 1);
  }
  for (const [i, { at, size }] of places.entries()) {
    const start = deltas.startInPage(at);
    expect(deltas.pageOf(at).subarray(start, start + size + 1)).toEqual(Buffer.alloc(size + 1, i % 251));
  }
  expect(deltas.place(1024 * 1024)).toBe(-1);
  deltas.close();
});
