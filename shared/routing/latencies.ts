/**
 * How long requests took, as counts by duration: few numbers that add up over instances, releases and time, as an average
 * of percentiles does not.
 */

/**
 * Upper ends of the buckets in milliseconds, from 1 ms to 65 s, each √2 of the one before: a percentile is off by less than
 * that. A last bucket has no end.
 */
export const latencyBounds: readonly number[] = Array.from({ length: 33 }, (_, index) => 2 ** (index / 2));

/** The bucket that a duration in milliseconds counts in. */
export function latencyBucket(milliseconds: number): number {
  const index = latencyBounds.findIndex((bound) => milliseconds <= bound);
  return index === -1 ? latencyBounds.length : index;
}

/**
 * The milliseconds that a share of the requests did not take longer than, as though they lay evenly within their bucket.
 * Undefined where there are none; the longest that is told apart is 65 s.
 * @param counts by bucket; missing ones at the end count as none
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
