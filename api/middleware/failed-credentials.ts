import { AppError } from '#shared/errors.ts';
import { type EventLimits, eventPolicies } from '#shared/rate-limits/event-limits.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** Dependencies of `createFailedCredentials`. */
export interface FailedCredentialsOptions {
  eventLimits: Pick<EventLimits, 'take' | 'refusedMilliseconds'>;
  /** IP address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
}

/**
 * Limits failed credentials of a source to 30 a minute, all kinds together (SPEC.md §8): tokens, passwords, signatures, and requests
 * without any. It counts failures only. So a right token works also from an address whose failures are refused, which others may
 * share: tokens are 256 random bits or a signature, and cannot be guessed by trying. Passwords can: `check` comes before them.
 */
export interface FailedCredentials {
  /** Call it before a password is compared. @throws AppError `rate_limited` while the source has no failures left */
  check(request: Request): void;
  /**
   * Counts a failure, if that is what the error says.
   * @returns the error to answer with: `rate_limited` instead of `unauthorized` for a source without failures left
   */
  count(request: Request, error: unknown): Promise<unknown>;
}

const policy = eventPolicies.failedCredentials;

/** Counts failed credentials by the source of the request, for every process of the platform. */
export function createFailedCredentials({ eventLimits, clientAddress }: FailedCredentialsOptions): FailedCredentials {
  const sourceOf = (request: Request): string => sourceKey(clientAddress(request));
  return {
    check(request) {
      const wait = eventLimits.refusedMilliseconds(policy, sourceOf(request));
      if (wait > 0) throw tooManyFailures(wait);
    },
    async count(request, error) {
      if (!(error instanceof AppError) || error.code !== 'unauthorized') return error;
      const { granted, resetMilliseconds } = await eventLimits.take(policy, sourceOf(request));
      return granted ? error : tooManyFailures(resetMilliseconds);
    },
  };
}

function tooManyFailures(milliseconds: number): AppError {
  const retryAfterSeconds = Math.max(1, Math.ceil(milliseconds / 1000));
  const message = `Too many requests with wrong or missing credentials from your address. Correct them, and try again in ${retryAfterSeconds} s.`;
  return new AppError('rate_limited', message, { retryAfterSeconds });
}
