import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';
import type { Refusals } from '#shared/rate-limits/refusals.ts';

/** Stores the times of calls by key. */
export interface SlidingLog {
  /** Adds a call at the current time if the last `windowMilliseconds` hold fewer than `limit` calls. Atomic per key. */
  hit(key: string, limit: number, windowMilliseconds: number): Promise<SlidingLogFacts>;
  /** See RateLimits.sweep. */
  sweep(): Promise<number>;
}

/** The state of a key after a call. */
export interface SlidingLogFacts {
  granted: boolean;
  /** Calls in the window, including this one if it was granted. */
  count: number;
  /** Milliseconds until the oldest call leaves the window. */
  resetMilliseconds: number;
}

/**
 * Rate limits on top of any log of calls. A refused key stays refused until its oldest call leaves the window. That is cached
 * here, so that a flood of calls costs one query per key and window.
 * @param refusals the cache
 */
export function createSlidingLogLimits(log: SlidingLog, refusals: Refusals): RateLimits {
  return {
    async take(policy, key) {
      const name = `${policy.name}:${key}`;
      const remembered = refusals.remaining(name);
      if (remembered > 0) return { granted: false, remaining: 0, resetMilliseconds: remembered };
      const { granted, count, resetMilliseconds } = await log.hit(name, policy.limit, policy.windowSeconds * 1000);
      if (!granted) refusals.remember(name, resetMilliseconds);
      return { granted, remaining: policy.limit - count, resetMilliseconds };
    },
    refusedMilliseconds: ({ name }, key) => refusals.remaining(`${name}:${key}`),
    sweep: () => log.sweep(),
  };
}
