import { HTTPException } from 'hono/http-exception';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { AppError, type AppErrorOptions, type ErrorCode, type ErrorDetail } from '#shared/errors.ts';

const statusOf = {
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  conflict: 409,
  validation_failed: 422,
  rate_limited: 429,
  internal: 500,
} as const satisfies Record<ErrorCode, number>;

/** HTTP statuses that the error envelope comes with. */
export type RefusalStatus = (typeof statusOf)[ErrorCode] | 400 | 405 | 408 | 413 | 415 | 503;

/** The error envelope of SPEC.md §7. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string; request_id: string; ts: string; details?: ErrorDetail[] };
}

/** The answer to a request that failed. */
export interface Refusal {
  status: RefusalStatus;
  headers: Record<string, string>;
  body: ErrorBody;
}

/** An error with another status than the one of its code. */
export class StatusError extends AppError {
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, code: ErrorCode, publicMessage: string, options?: AppErrorOptions) {
    super(code, publicMessage, options);
    this.status = status;
  }
}

/** The database restarts by itself in about this time. */
const outageSeconds = 5;

/** @param bytes the limit */
export function bodyTooLarge(bytes: number): StatusError {
  return new StatusError(413, 'validation_failed', `The body is too large: at most ${bytes} bytes.`);
}

/** An AppError stays as it is. Hono's errors of a body keep their status. Any other error is `internal`, and its message is not shown. */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  if (error instanceof HTTPException) {
    if (error.status === 400) return new StatusError(400, 'validation_failed', 'The body is not valid JSON.', { cause: error });
    if (error.status === 415) {
      return new StatusError(415, 'validation_failed', 'The body must be JSON, sent with `Content-Type: application/json`.', {
        cause: error,
      });
    }
  }
  if (isDatabaseOutage(error)) {
    const message = 'The platform cannot reach its database at the moment. Try again in a few seconds.';
    return new StatusError(503, 'internal', message, { cause: error, retryAfterSeconds: outageSeconds });
  }
  return new AppError('internal', 'Internal error. Try again. If it persists, give the request_id to the operator.', {
    cause: error,
  });
}

/** Status, headers and envelope of an error. @param requestId `req_…` */
export function toRefusal(error: AppError, requestId: string, now: Date): Refusal {
  const headers: Record<string, string> = {};
  if (error.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.retryAfterSeconds);
  if (error.code === 'unauthorized') headers['www-authenticate'] = 'Bearer';
  return {
    status: error instanceof StatusError ? error.status : statusOf[error.code],
    headers,
    body: {
      error: {
        code: error.code,
        message: error.message,
        request_id: requestId,
        ts: now.toISOString(),
        ...(error.details.length === 0 ? {} : { details: error.details }),
      },
    },
  };
}
