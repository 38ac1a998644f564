import type { Clock } from '#shared/clock.ts';
import { AppError } from '#shared/errors.ts';
import { emailKey } from '#shared/identity/credentials.ts';
import { hashSecretToken } from '#shared/secret-token.ts';

/** Failed logins into one account from one place, or from all places that are strangers to it together. */
export interface LoginBudget {
  /** Hash of the email, so that what people type by mistake is not kept. */
  account: string;
  /** '' for strangers. */
  source: string;
}

export interface LoginAttemptStore {
  /**
   * Adds a failure, unless `most` were added after `since`: then the oldest of the newest `most` is told. Atomic: of many
   * at once no more than `most` are granted.
   */
  addFailure(budget: LoginBudget, at: Date, most: number, since: Date): Promise<{ id: string } | { oldest: Date }>;
  removeFailure(id: string): Promise<void>;
  isKnown(account: string, source: string, since: Date): Promise<boolean>;
  remember(account: string, source: string, at: Date): Promise<void>;
  /** Forgets what is older. Returns how many. */
  sweep(failuresBefore: Date, sourcesBefore: Date): Promise<number>;
}

const mostFailures = 10;
const windowMilliseconds = 15 * 60 * 1000;
const knownMilliseconds = 90 * 86_400_000;

export interface LoginLimits {
  /**
   * An attempt counts as failed until it is said to be none: many at once are no way around the limit.
   * @throws AppError rate_limited, alike for accounts that there are and that there are not
   */
  begin(email: string, source: string): Promise<LoginAttempt>;
  /** Who signed up from there is at home there. */
  remember(email: string, source: string): Promise<void>;
  sweep(): Promise<number>;
}

export interface LoginAttempt {
  succeed(): Promise<void>;
  /** The password was not even looked at. */
  forgive(): Promise<void>;
}

/**
 * Ten failed logins in any 15 minutes. Where somebody has logged in before they have ten of their own: whoever guesses
 * from elsewhere uses up what strangers have together, and locks nobody out who is at home. (As OWASP's device cookies,
 * with the address in place of the cookie, since programs keep none.) A success gives nobody else's failures back.
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
