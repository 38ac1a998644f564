import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Times of calls per key. */
export interface SlidingLog {
  /** Adds a call now if fewer than `limit` were within the last `windowMilliseconds`; atomic per key. */
  hit(key: string, limit: number, windowMilliseconds: number): Promise<SlidingLogFacts>;
  /** See RateLimits.sweep. */
  sweep(): Promise<number>;
}

export interface SlidingLogFacts {
  granted: boolean;
  /** Calls in the window, this one included when it was granted. */
  count: number;
  /** Until the oldest call in the window leaves it. */
  resetMilliseconds: number;
}

/**
 * Limits over any log of calls. A key that was refused stays refused until the oldest call leaves its window, whatever
 * happens elsewhere; so that is remembered here, and a flood costs the log one look per key and window.
 * @param now milliseconds since the epoch
 */
export function createSlidingLogLimits(log: SlidingLog, now: () => number): RateLimits {
  const refusals = createRefusals(now);
  return {
    async take(policy, key) {
      const name = `${policy.name}:${key}`;
      const remembered = refusals.remaining(name);
      if (remembered > 0) return { granted: false, remaining: 0, resetMilliseconds: remembered };
      const { granted, count, resetMilliseconds } = await log.hit(name, policy.limit, policy.windowSeconds * 1000);
      if (!granted) refusals.remember(name, resetMilliseconds);
      return { granted, remaining: policy.limit - count, resetMilliseconds };
    },
    sweep: () => log.sweep(),
  };
}

const mostRefusals = 10_000;

function createRefusals(now: () => number) {
  const refusals = new Map<string, { from: number; until: number }>();
  const forgetPast = (): void => {
    for (const [name, { until }] of refusals) if (until <= now()) refusals.delete(name);
    // Too many at once: what is forgotten here, the log still knows.
    if (refusals.size > mostRefusals) refusals.clear();
  };
  return {
    /** Milliseconds; 0 when not refused. A clock set back ends a refusal rather than prolongs it. */
    remaining(name: string): number {
      const refusal = refusals.get(name);
      const at = now();
      return refusal === undefined || at < refusal.from ? 0 : Math.max(0, refusal.until - at);
    },
    remember(name: string, milliseconds: number): void {
      const from = now();
      refusals.set(name, { from, until: from + milliseconds });
      if (refusals.size > mostRefusals) forgetPast();
    },
  };
}
