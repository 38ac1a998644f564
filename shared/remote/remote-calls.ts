import { AppError, type ErrorCode, type ErrorDetail, errorCodes } from '#shared/errors.ts';

/** Which methods of a port another process may call. */
export interface CallableMethods {
  /** They return a promise. */
  readonly calls: readonly string[];
  /** They return an async iterable. */
  readonly streams?: readonly string[];
}

/** Calls methods of ports in another process of the platform. */
export interface RemoteCaller {
  /** @throws AppError as the method does, or 'internal' when the other process cannot be reached */
  call(port: string, method: string, args: readonly unknown[]): Promise<unknown>;
  /** Likewise, of a method that returns an async iterable. An abort signal among the arguments ends the iteration. */
  stream(port: string, method: string, args: readonly unknown[]): AsyncIterable<unknown>;
}

/** An `AppError` on its way to the caller. */
export interface SentError {
  code: ErrorCode;
  message: string;
  details: ErrorDetail[];
  retryAfterSeconds?: number | undefined;
}

/** What a stream consists of: one line of JSON each. A stream without `end` or `error` was cut. */
export type StreamLine = { item: unknown } | { error: SentError } | { end: true };

/** Content type of a stream. */
export const streamType = 'application/x-ndjson';

/** The path of a call. */
export function callPath(port: string, method: string): string {
  return `/internal/${port}/${method}`;
}

/** Only an `AppError` keeps its message: others may name files and hosts of this machine. */
export function toSentError(error: unknown): SentError {
  if (!(error instanceof AppError))
    return { code: 'internal', message: 'The platform failed. Its log has the cause.', details: [] };
  const { code, message, details, retryAfterSeconds } = error;
  return { code, message, details, retryAfterSeconds };
}

/** The error that the other process threw. */
export function fromSentError({ code, message, details, retryAfterSeconds }: SentError): AppError {
  return new AppError(errorCodes.includes(code) ? code : 'internal', message, {
    details,
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
  });
}

/**
 * A port whose methods run in another process. A method that is not callable rejects: only the process that has the driver may use it.
 * @param port its name there
 */
export function createRemotePort<Port extends object>(caller: RemoteCaller, port: string, methods: CallableMethods): Port {
  const find = (method: string): ((...args: readonly unknown[]) => unknown) => {
    if (methods.calls.includes(method)) return (...args) => caller.call(port, method, args);
    if (methods.streams?.includes(method) === true) return (...args) => caller.stream(port, method, args);
    return () => Promise.reject(new AppError('internal', `${port}.${method} is for the process of the worker only.`));
  };
  return new Proxy({} as Port, {
    // A promise resolves with an object that has no `then`.
    get: (_, name) => (typeof name === 'symbol' || name === 'then' ? undefined : find(name)),
  });
}
