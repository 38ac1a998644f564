import { expect, it } from 'vitest';
import { gatherHits, type WaitingHits } from '#shared/rate-limits/gathered-hits.ts';

/** A writer that waits until it is released, and records what it was given. */
function holdWrites() {
  const written: Record<string, number>[] = [];
  const letGo: ((error?: Error) => void)[] = [];
  const hit = gatherHits(async (hits: WaitingHits) => {
    written.push(Object.fromEntries([...hits].map(([key, calls]) => [key, calls.length])));
    const error = await new Promise<Error | undefined>((resolve) => letGo.push(resolve));
    for (const calls of hits.values())
      for (const [index, call] of calls.entries()) {
        if (error === undefined) call.settle({ granted: true, count: index + 1, resetMilliseconds: 0 });
        else call.fail(error);
      }
  });
  return { written, hit, finish: (error?: Error) => letGo.shift()?.(error) };
}

it('a call that comes alone is written at once; those that come meanwhile are written together after it, in their order', async () => {
  const { written, hit, finish } = holdWrites();
  const first = hit('ada');
  const [second, other, third] = [hit('ada'), hit('bob'), hit('ada')];
  expect(written).toEqual([{ ada: 1 }]);
  finish();
  await first;
  await expect.poll(() => written).toEqual([{ ada: 1 }, { ada: 2, bob: 1 }]);
  finish();
  expect((await Promise.all([second, other, third])).map(({ count }) => count)).toEqual([1, 1, 2]);
});

it('a write that fails rejects its own calls only, and the next is tried', async () => {
  const { written, hit, finish } = holdWrites();
  const first = hit('ada');
  const second = hit('ada');
  finish(new Error('the database is away'));
  await expect(first).rejects.toThrow('the database is away');
  await expect.poll(() => written).toHaveLength(2);
  finish();
  expect((await second).granted).toBe(true);
});
