import type { components } from '#shared/api-client/openapi-types.ts';

/** Error codes of SPEC.md §7. */
export type ErrorCode = components['schemas']['Error']['error']['code'];

/** A field of the request that the API refused. */
export interface ErrorDetail {
  /** Dotted path of the field, '' for the whole request. */
  readonly path: string;
  readonly message: string;
}

/** The API refused a request. Everything in it is as the server sent it: clean it before you print it. */
export class ApiError extends Error {
  /** An `ErrorCode`, or one that this client does not know. Undefined when the answer had no error envelope. */
  readonly code: string | undefined;
  readonly status: number;
  readonly requestId: string | undefined;
  readonly details: readonly ErrorDetail[];
  /** The header `Retry-After` of a `rate_limited` request. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, facts: Pick<ApiError, 'code' | 'status' | 'requestId' | 'details' | 'retryAfterSeconds'>) {
    super(message);
    this.name = 'ApiError';
    this.code = facts.code;
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.details = facts.details;
    this.retryAfterSeconds = facts.retryAfterSeconds;
  }
}

/** No answer came: the platform is down, or the connection broke. */
export class UnreachableError extends Error {
  /** Base URL of the platform. */
  readonly host: string;

  constructor(host: string, cause?: unknown) {
    super(`Cannot reach the platform at ${host}.`, { cause });
    this.name = 'UnreachableError';
    this.host = host;
  }
}

/** An answer came, but not from a platform: something else listens at that address. */
export class ForeignAnswerError extends Error {
  readonly host: string;
  readonly status: number;

  constructor(host: string, status: number) {
    super(`${host} answers with status ${status}, but not as a paas platform does.`);
    this.name = 'ForeignAnswerError';
    this.host = host;
    this.status = status;
  }
}

/**
 * The error that a refused request stands for.
 * @param body the error envelope (SPEC.md §7), or whatever came in its place
 */
export function apiErrorOf(body: unknown, { status, headers }: Pick<Response, 'status' | 'headers'>): ApiError {
  const envelope = fieldsOf(fieldsOf(body)['error']);
  const retryAfter = headers.get('retry-after');
  return new ApiError(textOf(envelope['message']) ?? `The platform answered ${status}.`, {
    code: textOf(envelope['code']),
    status,
    requestId: textOf(envelope['request_id']),
    details: detailsOf(envelope['details']),
    retryAfterSeconds: retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : undefined,
  });
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function detailsOf(value: unknown): ErrorDetail[] {
  if (!Array.isArray(value)) return [];
  return value.flatMap((detail: unknown) => {
    const message = textOf(fieldsOf(detail)['message']);
    return message === undefined ? [] : [{ path: textOf(fieldsOf(detail)['path']) ?? '', message }];
  });
}
