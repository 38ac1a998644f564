/** How often somebody may ask. Drivers: `postgres-rate-limits.ts` (exact over several processes), `memory-rate-limits.ts`. */
import { limits } from '#shared/limits.ts';

export interface RateLimitPolicy {
  /** Of [a-z-]; names the policy to clients, and keeps keys of different policies apart. */
  readonly name: string;
  /** Calls in any window of `windowSeconds`. */
  readonly limit: number;
  readonly windowSeconds: number;
}

export interface RateLimitVerdict {
  granted: boolean;
  /** How many more calls would be granted right now. */
  remaining: number;
  /** Milliseconds until the oldest counted call leaves the window: then one more fits. */
  resetMilliseconds: number;
}

export interface RateLimits {
  /** Counts one call. A refused call does not count. The window is rolling: any span of its length holds `limit` at most. */
  take(policy: RateLimitPolicy, key: string): Promise<RateLimitVerdict>;
  /** Forgets keys that were idle for an hour. Returns how many. */
  sweep(): Promise<number>;
}

/** SPEC.md §8. */
export const rateLimitPolicies = {
  authenticated: { name: 'authenticated', limit: limits.http.authenticatedPerMinute, windowSeconds: 60 },
  unauthenticated: { name: 'unauthenticated', limit: limits.http.unauthenticatedPerMinute, windowSeconds: 60 },
} as const satisfies Record<string, RateLimitPolicy>;
