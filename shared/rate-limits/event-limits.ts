/**
 * Port: limits on rare events of a key, such as failed logins of an address. Drivers: `postgres-event-limits.ts` (shared by all
 * processes), `fake-event-limits.ts`. A window is fixed: it begins with the first event of a key. Limits that must be exact in any
 * window are `rate-limits.ts`.
 */
import { secondsPerDay } from '#shared/durations.ts';
import { limits } from '#shared/limits.ts';
import type { RateLimitPolicy, RateLimitVerdict } from '#shared/rate-limits/rate-limits.ts';

export interface EventLimits {
  /** Counts one event. It is granted up to the limit of the window. Events beyond it may be left uncounted. */
  take(policy: RateLimitPolicy, key: string): Promise<RateLimitVerdict>;
  /** Takes back an event that `take` has granted. */
  giveBack(policy: RateLimitPolicy, key: string): Promise<void>;
  /**
   * Milliseconds for which the key has no events left, as far as this process knows; 0 when it may have some. It asks nobody: a
   * process learns by its own `take` that a limit is reached.
   */
  refusedMilliseconds(policy: RateLimitPolicy, key: string): number;
  /** Removes windows that are over. @returns how many */
  sweep(): Promise<number>;
}

/** What is counted so. */
export const eventPolicies = {
  /** Wrong tokens, passwords and signatures from one source, of all kinds together (SPEC.md §8). */
  failedCredentials: { name: 'failed-credentials', limit: limits.http.unauthenticatedPerMinute, windowSeconds: 60 },
  /** Wrong signatures of webhooks for one secret, from all sources that never sent a right one. */
  wrongSignatures: { name: 'wrong-signatures', limit: 300, windowSeconds: 60 },
} as const satisfies Record<string, RateLimitPolicy>;

/** Accounts that one source may create a day, without an invitation. @param limit see PAAS_SIGNUPS_PER_ADDRESS */
export function signUpPolicy(limit: number): RateLimitPolicy {
  return { name: 'sign-ups', limit, windowSeconds: secondsPerDay };
}
