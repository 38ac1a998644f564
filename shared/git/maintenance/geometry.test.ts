import { describe, expect, it } from 'vitest';
import { choosePacksToJoin } from '#shared/git/maintenance/geometry.ts';

const choose = (counts: readonly number[], most = 1_000_000): number[] =>
  choosePacksToJoin(
    counts.map((objectCount) => ({ objectCount })),
    most,
  ).map(({ objectCount }) => objectCount);

describe('the packs that are joined', () => {
  it.each([
    [[], []],
    [[7], []],
    [[1, 2, 4, 8], []],
    [[100, 3], []],
    [
      [3, 3],
      [3, 3],
    ],
    [
      [1, 2, 4, 7],
      [1, 2, 4, 7],
    ],
    [
      [1000, 3, 3, 3],
      [3, 3, 3],
    ],
    // The joined small packs would be too similar to the next larger one.
    [
      [1000, 10, 3, 3, 3],
      [3, 3, 3, 10],
    ],
    [
      [30, 3, 3, 3, 10],
      [3, 3, 3, 10, 30],
    ],
  ])('of %j are %j', (counts, joined) => {
    expect(choose(counts)).toEqual(joined);
  });

  it('have no more objects together than a pack may have', () => {
    expect(choose([4, 4, 4, 4], 12)).toEqual([4, 4, 4]);
    expect(choose([4, 4], 7)).toEqual([]);
  });

  it('are few at a time: of 2,000 equal pushes, each object is copied a few times, and few packs remain', () => {
    let packs: { objectCount: number }[] = [];
    let copied = 0;
    for (let push = 0; push < 2000; push++) {
      packs.push({ objectCount: 3 });
      if (packs.length < 32) continue;
      const joined = choosePacksToJoin(packs, 1_000_000);
      const objectCount = joined.reduce((sum, pack) => sum + pack.objectCount, 0);
      copied += objectCount;
      packs = [...packs.filter((pack) => !joined.includes(pack)), { objectCount }];
      expect(packs.length).toBeLessThan(12);
    }
    expect(copied / 6000).toBeLessThan(8);
  });
});
