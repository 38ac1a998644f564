/** A whole number from 0 on, less than `below`. */
export type Random = (below: number) => number;

/** mulberry32: a failure names its seed, and the seed makes the same numbers again. */
export function createRandom(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** @throws RangeError where there is nothing to pick from */
export function pick<T>(random: Random, from: readonly T[]): T {
  const picked = from[random(from.length)];
  if (picked === undefined) throw new RangeError('there is nothing to pick from');
  return picked;
}
