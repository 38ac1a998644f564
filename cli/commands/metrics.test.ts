import { expect, it } from 'vitest';
import { describeSeries } from '#cli/commands/metrics.ts';

it.each([
  ['requests', [3, 4], '7 in total'],
  ['bytes', [84 * 1024 * 1024, 61 * 1024 * 1024], 'now 61 MiB, maximum 84 MiB'],
  ['milliseconds', [120.4, 3.14], 'now 3.1 ms, maximum 120 ms'],
  ['cores', [0.5, 0.25], 'now 0.25 cores, maximum 0.50 cores'],
])('metrics in %s are summarised', (unit, values, words) => {
  const points = values.map((value, index) => [index * 10_000, value] as const);
  expect(describeSeries({ unit, stepSeconds: 10, points })).toBe(words);
});
