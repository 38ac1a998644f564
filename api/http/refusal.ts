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

export type RefusalStatus = (typeof statusOf)[ErrorCode] | 400 | 405 | 413 | 415 | 503;

/** The envelope of SPEC.md §7. */
export interface ErrorBody {
  error: { code: ErrorCode; message: string; request_id: string; ts: string; details?: ErrorDetail[] };
}

export interface Refusal {
  status: RefusalStatus;
  headers: Record<string, string>;
  body: ErrorBody;
}

/** An error whose status is not that of its code. */
export class StatusError extends AppError {
  readonly status: RefusalStatus;

  constructor(status: RefusalStatus, code: ErrorCode, publicMessage: string, options?: AppErrorOptions) {
    super(code, publicMessage, options);
    this.status = status;
  }
}

/** A database that is away is back in about this time: it is started again by itself. */
const outageSeconds = 5;

export function bodyTooLarge(bytes: number): StatusError {
  return new StatusError(413, 'validation_failed', `The body is too large: at most ${bytes} bytes.`);
}

/** What is thrown but an AppError is our fault, and its text stays inside; Hono's own refusals of a body keep their status. */
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
  return new AppError(
    'internal',
    'Something went wrong on our side. Try again; the request_id helps the operator find out what.',
    {
      cause: error,
    },
  );
}

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
