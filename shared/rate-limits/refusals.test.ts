import { expect, it } from 'vitest';
import { createRefusals } from './refusals.ts';

it('remembers at most 10,000 refusals, of which those that are over go first', () => {
  let now = 0;
  const refusals = createRefusals(() => now);
  const remembered = (from: number, to: number): number =>
    Array.from({ length: to - from }, (_, index) => refusals.remaining(`key ${from + index}`)).filter((left) => left > 0).length;
  for (let key = 0; key < 6000; key++) refusals.remember(`key ${key}`, 1000);
  now = 2000;
  for (let key = 6000; key < 12_000; key++) refusals.remember(`key ${key}`, 1000);
  expect(remembered(6000, 12_000)).toBe(6000);
  for (let key = 12_000; key < 30_000; key++) refusals.remember(`key ${key}`, 1000);
  expect(remembered(0, 30_000)).toBeLessThanOrEqual(10_000);
});
