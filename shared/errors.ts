/** The only error codes an outsider ever sees (SPEC.md §7). */
export const errorCodes = [
  'unauthorized',
  'forbidden',
  'not_found',
  'conflict',
  'validation_failed',
  'rate_limited',
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** Where in the request the fault lies (`path` is dotted, '' for the whole) and what to do about it. */
export interface ErrorDetail {
  path: string;
  message: string;
}

export interface AppErrorOptions {
  /** For insiders: logged, never shown. */
  cause?: unknown;
  details?: ErrorDetail[];
  /** Seconds until the same call can succeed. */
  retryAfterSeconds?: number;
}

/**
 * An error with a message that is fit for the person who caused it: it says what is wrong and what to do.
 * Whatever else is thrown is `internal`, and its text stays inside.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetail[];
  readonly retryAfterSeconds: number | undefined;

  constructor(code: ErrorCode, publicMessage: string, options: AppErrorOptions = {}) {
    super(publicMessage, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.details = options.details ?? [];
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** One wording for "does not exist" and "not yours", so that nobody can tell them apart. */
export function notFound(noun: string): AppError {
  return new AppError('not_found', `No such ${noun}.`);
}
