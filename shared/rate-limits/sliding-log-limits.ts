import { RateLimiterRes, RateLimiterStoreAbstract } from 'rate-limiter-flexible';
import type { RateLimitPolicy, RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Times of calls per key. */
export interface SlidingLog {
  /** Adds a call now if fewer than `limit` were within the last `windowMilliseconds`; atomic per key. */
  hit(key: string, limit: number, windowMilliseconds: number): Promise<SlidingLogFacts>;
  sweep(): Promise<number>;
}

export interface SlidingLogFacts {
  granted: boolean;
  /** Calls in the window, this one included when it was granted. */
  count: number;
  /** Until the oldest call in the window leaves it. */
  resetMilliseconds: number;
}

/** Limits that slide, over any log of calls. A key that was refused is refused from memory until one more call can fit. */
export function createSlidingLogLimits(log: SlidingLog): RateLimits {
  const limiters = new Map<RateLimitPolicy, SlidingLogLimiter>();
  const limiterOf = (policy: RateLimitPolicy): SlidingLogLimiter => {
    const limiter = limiters.get(policy) ?? new SlidingLogLimiter(policy, log);
    limiters.set(policy, limiter);
    return limiter;
  };
  return {
    async take(policy, key) {
      const { granted, facts } = await consume(limiterOf(policy), key);
      return { granted, remaining: Math.max(0, facts.remainingPoints), resetMilliseconds: facts.msBeforeNext };
    },
    sweep: () => log.sweep(),
  };
}

/**
 * The package's own stores count in fixed windows: around the turn of one, nearly twice the limit passes. It leaves open
 * what a store does, so this one slides; what is refused is remembered by the package and never reaches the log.
 */
class SlidingLogLimiter extends RateLimiterStoreAbstract {
  readonly #log: SlidingLog;

  constructor(policy: RateLimitPolicy, log: SlidingLog) {
    super({
      storeClient: log,
      keyPrefix: policy.name,
      points: policy.limit,
      duration: policy.windowSeconds,
      inMemoryBlockOnConsumed: policy.limit + 1,
    });
    this.#log = log;
  }

  _upsert(key: string, _points: number, windowMilliseconds: number): Promise<SlidingLogFacts> {
    return this.#log.hit(key, this.points, windowMilliseconds);
  }

  _getRateLimiterRes(_key: string, _points: number, { granted, count, resetMilliseconds }: SlidingLogFacts): RateLimiterRes {
    return new RateLimiterRes(this.points - count, resetMilliseconds, granted ? count : this.points + 1);
  }
}

/** The package rejects with the facts when the limit is reached, and with an Error when the store fails. */
async function consume(limiter: SlidingLogLimiter, key: string): Promise<{ granted: boolean; facts: RateLimiterRes }> {
  try {
    return { granted: true, facts: await limiter.consume(key) };
  } catch (refusal) {
    if (refusal instanceof RateLimiterRes) return { granted: false, facts: refusal };
    throw refusal;
  }
}
