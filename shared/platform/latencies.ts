/**
 * How long requests took, as counts by duration. Such counts are few, and can be added up over instances, releases and
 * time; percentiles cannot.
 */

/**
 * Upper bounds of the buckets in milliseconds, from 1 ms to 65 s, each √2 times the one before: a percentile is off by less
 * than that factor. One more bucket has no upper bound.
 */
export const latencyBounds: readonly number[] = Array.from({ length: 33 }, (_, index) => 2 ** (index / 2));

/** The index of the bucket that counts a duration in milliseconds. */
export function latencyBucket(milliseconds: number): number {
  const index = latencyBounds.findIndex((bound) => milliseconds <= bound);
  return index === -1 ? latencyBounds.length : index;
}

/**
 * A percentile in milliseconds, interpolated within its bucket; 65 s at most. Undefined when there were no requests.
 * @param counts by bucket; missing ones at the end are 0
 * @param share 0.95 for the 95th percentile
 */
export function latencyPercentile(counts: readonly number[], share: number): number | undefined {
  const rank = share * counts.reduce((sum, count) => sum + count, 0);
  if (rank === 0) return undefined;
  let below = 0;
  for (const [bucket, count] of counts.entries()) {
    if (count > 0 && below + count >= rank) {
      const from = latencyBounds[bucket - 1] ?? 0;
      const to = latencyBounds[bucket] ?? from;
      return from + ((rank - below) / count) * (to - from);
    }
    below += count;
  }
  return latencyBounds.at(-1);
}
