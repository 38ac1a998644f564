import type { Clock } from '#shared/clock.ts';
import { millisecondsPerDay, millisecondsPerMinute } from '#shared/durations.ts';
import { AppError } from '#shared/errors.ts';
import { emailKey } from '#shared/identity/credentials.ts';
import { hashSecretToken } from '#shared/secret-token.ts';

/** What failed logins are counted by: an account and a known source, or an account and all unknown sources together. */
export interface LoginBudget {
  /** Hash of the email, so that text entered by mistake is not stored. */
  account: string;
  /** '' for all unknown sources together. */
  source: string;
}

/** Stores failed logins and known sources. */
export interface LoginAttemptStore {
  /**
   * Adds a failure, unless `most` were added after `since`: then the time of the oldest of the newest `most` is returned.
   * Atomic: no more than `most` concurrent calls succeed.
   */
  addFailure(budget: LoginBudget, at: Date, most: number, since: Date): Promise<{ id: string } | { oldest: Date }>;
  removeFailure(id: string): Promise<void>;
  /** Whether there was a login from this source after `since`. */
  isKnown(account: string, source: string, since: Date): Promise<boolean>;
  remember(account: string, source: string, at: Date): Promise<void>;
  /** Removes older rows. @returns how many */
  sweep(failuresBefore: Date, sourcesBefore: Date): Promise<number>;
}

const mostFailures = 10;
const windowMilliseconds = 15 * millisecondsPerMinute;
const knownMilliseconds = 90 * millisecondsPerDay;

/** Limits failed logins. */
export interface LoginLimits {
  /**
   * An attempt counts as failed until `succeed` or `forgive` is called, so that concurrent attempts cannot exceed the limit.
   * @throws AppError rate_limited, for existing and unknown accounts alike
   */
  begin(email: string, source: string): Promise<LoginAttempt>;
  /** Marks a source as known, for example after a sign-up. */
  remember(email: string, source: string): Promise<void>;
  /** Removes what no longer counts. @returns how many rows */
  sweep(): Promise<number>;
}

/** An attempt whose outcome is not known yet. */
export interface LoginAttempt {
  succeed(): Promise<void>;
  /** The password could not be checked: the attempt does not count. */
  forgive(): Promise<void>;
}

/**
 * Allows ten failed logins per account in any 15 minutes. Each source from which the user logged in before has ten of its own;
 * all other sources share ten. So somebody who guesses passwords from elsewhere does not lock the user out. This follows OWASP's
 * device cookies, with the address in place of the cookie, since programs keep no cookies. A success only removes its own
 * failure.
 */
export function createLoginLimits(store: LoginAttemptStore, clock: Clock): LoginLimits {
  const ago = (milliseconds: number): Date => new Date(clock.now().getTime() - milliseconds);
  const accountOf = (email: string): Promise<string> => hashSecretToken(emailKey(email));
  return {
    async begin(email, source) {
      const account = await accountOf(email);
      const known = await store.isKnown(account, source, ago(knownMilliseconds));
      const budget = { account, source: known ? source : '' };
      const added = await store.addFailure(budget, clock.now(), mostFailures, ago(windowMilliseconds));
      if ('oldest' in added) {
        const wait = added.oldest.getTime() + windowMilliseconds - clock.now().getTime();
        throw tooMany(Math.max(1, Math.ceil(wait / 1000)));
      }
      return {
        async succeed() {
          await store.removeFailure(added.id);
          await store.remember(account, source, clock.now());
        },
        forgive: () => store.removeFailure(added.id),
      };
    },
    remember: async (email, source) => store.remember(await accountOf(email), source, clock.now()),
    sweep: () => store.sweep(ago(windowMilliseconds), ago(knownMilliseconds)),
  };
}

function tooMany(retryAfterSeconds: number): AppError {
  const message = `Too many failed logins for this email address. Try again in ${retryAfterSeconds} s, or from where you have logged in before.`;
  return new AppError('rate_limited', message, { retryAfterSeconds });
}
