import { describe, expect, it } from 'vitest';
import { latencyBounds, latencyBucket, latencyPercentile } from '#shared/platform/latencies.ts';

function countsOf(durations: readonly number[]): number[] {
  const counts = latencyBounds.map(() => 0).concat(0);
  for (const duration of durations) counts[latencyBucket(duration)] = (counts[latencyBucket(duration)] ?? 0) + 1;
  return counts;
}

describe('a percentile of counted durations', () => {
  const spread = Array.from({ length: 2000 }, (_, index) => 1.2 * 1.004 ** index);

  it.each([0.5, 0.95, 0.99])('of share %d is within a factor of √2 of the real one', (share) => {
    const real = spread[Math.ceil(share * spread.length) - 1] ?? Number.NaN;
    const computed = latencyPercentile(countsOf(spread), share) ?? Number.NaN;
    expect(computed / real).toBeGreaterThan(1 / Math.SQRT2);
    expect(computed / real).toBeLessThan(Math.SQRT2);
  });

  it('shows a few slow requests that an average would hide', () => {
    const counts = countsOf([...Array.from({ length: 98 }, () => 5), 3000, 3000]);
    expect(latencyPercentile(counts, 0.5)).toBeLessThan(6);
    expect(latencyPercentile(counts, 0.99)).toBeGreaterThan(2000);
  });

  it('is the same for added-up counts as for all durations at once', () => {
    const [one, two] = [countsOf(spread.slice(0, 700)), countsOf(spread.slice(700))];
    const sum = one.map((count, index) => count + (two[index] ?? 0));
    expect(latencyPercentile(sum, 0.95)).toBe(latencyPercentile(countsOf(spread), 0.95));
  });

  it('is undefined without requests, and the last bound for longer durations', () => {
    expect(latencyPercentile([], 0.5)).toBeUndefined();
    expect(latencyPercentile([0, 0], 0.5)).toBeUndefined();
    expect(latencyPercentile(countsOf([10 ** 9]), 0.5)).toBe(latencyBounds.at(-1));
    expect(latencyPercentile(countsOf([0]), 1)).toBe(1);
  });
});
