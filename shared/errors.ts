/** The error codes of the API (SPEC.md §7). */
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

/** A fault in one part of the request: its dotted path ('' for the whole request) and what to do. */
export interface ErrorDetail {
  path: string;
  message: string;
}

export interface AppErrorOptions {
  /** Logged for the operator, never shown to the client. */
  cause?: unknown;
  details?: ErrorDetail[];
  /** Seconds until the same request can succeed. */
  retryAfterSeconds?: number;
}

/**
 * An error whose message may be shown to the client: it says what is wrong and what to do. Any other error is reported as
 * `internal`, without its message.
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

/** The same wording for "does not exist" and "not yours", so that clients cannot distinguish them. */
export function notFound(noun: string): AppError {
  return new AppError('not_found', `No such ${noun}.`);
}
