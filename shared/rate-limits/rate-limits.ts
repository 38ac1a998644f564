/** Port: limits on the number of calls. Drivers: `postgres-rate-limits.ts` (exact over several processes), `fake-rate-limits.ts`. */
import { limits } from '#shared/limits.ts';

/** How many calls are allowed in which time. */
export interface RateLimitPolicy {
  /** `^[a-z-]+$`. Clients see it; keys of different policies are counted apart. */
  readonly name: string;
  /** Largest number of calls in any window of `windowSeconds`. */
  readonly limit: number;
  readonly windowSeconds: number;
}

/** Whether a call was allowed, and what remains. */
export interface RateLimitVerdict {
  granted: boolean;
  /** How many more calls would be granted right now. */
  remaining: number;
  /** Milliseconds until the oldest counted call leaves the window, which makes room for one more. */
  resetMilliseconds: number;
}

export interface RateLimits {
  /** Counts one call. Refused calls are not counted. The window is rolling: no span of its length holds more than `limit` calls. */
  take(policy: RateLimitPolicy, key: string): Promise<RateLimitVerdict>;
  /**
   * Milliseconds for which the key's calls are refused, as far as this process knows; 0 when they may be granted. It asks nobody: a
   * process learns by its own `take` that a limit is reached.
   */
  refusedMilliseconds(policy: RateLimitPolicy, key: string): number;
  /** Removes keys that were idle for an hour. @returns how many */
  sweep(): Promise<number>;
}

/** The limits of SPEC.md §8. */
export const rateLimitPolicies = {
  authenticated: { name: 'authenticated', limit: limits.http.authenticatedPerMinute, windowSeconds: 60 },
  unauthenticated: { name: 'unauthenticated', limit: limits.http.unauthenticatedPerMinute, windowSeconds: 60 },
} as const satisfies Record<string, RateLimitPolicy>;
