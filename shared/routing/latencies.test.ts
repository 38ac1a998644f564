import { describe, expect, it } from 'vitest';
import { latencyBounds, latencyBucket, latencyPercentile } from '#shared/routing/latencies.ts';

function countsOf(durations: readonly number[]): number[] {
  const counts = latencyBounds.map(() => 0).concat(0);
  for (const duration of durations) counts[latencyBucket(duration)] = (counts[latencyBucket(duration)] ?? 0) + 1;
  return counts;
}

describe('a percentile of counted durations', () => {
  const spread = Array.from({ length: 2000 }, (_, index) => 1.2 * 1.004 ** index);

  it.each([0.5, 0.95, 0.99])('of share %d is the real one to a factor of √2', (share) => {
    const real = spread[Math.ceil(share * spread.length) - 1] ?? Number.NaN;
    const told = latencyPercentile(countsOf(spread), share) ?? Number.NaN;
    expect(told / real).toBeGreaterThan(1 / Math.SQRT2);
    expect(told / real).toBeLessThan(Math.SQRT2);
  });

  it('shows the slow few that an average hides', () => {
    const counts = countsOf([...Array.from({ length: 98 }, () => 5), 3000, 3000]);
    expect(latencyPercentile(counts, 0.5)).toBeLessThan(6);
    expect(latencyPercentile(counts, 0.99)).toBeGreaterThan(2000);
  });

  it('is the same of counts that were added up as of all durations at once', () => {
    const [one, two] = [countsOf(spread.slice(0, 700)), countsOf(spread.slice(700))];
    const sum = one.map((count, index) => count + (two[index] ?? 0));
    expect(latencyPercentile(sum, 0.95)).toBe(latencyPercentile(countsOf(spread), 0.95));
  });

  it('is none of no requests, and ends where durations are not told apart', () => {
    expect(latencyPercentile([], 0.5)).toBeUndefined();
    expect(latencyPercentile([0, 0], 0.5)).toBeUndefined();
    expect(latencyPercentile(countsOf([10 ** 9]), 0.5)).toBe(latencyBounds.at(-1));
    expect(latencyPercentile(countsOf([0]), 1)).toBe(1);
  });
});
