import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { AppError } from '#shared/errors.ts';
import { type LookUp, resolveHost } from '#shared/sources/resolve-host.ts';
import { SourceUnavailable } from '#shared/sources/source-unavailable.ts';

/** Which addresses may be reached. */
export interface GuardedRequestOptions {
  lookUp: LookUp;
  /** Allows plain HTTP and hosts in private networks. */
  allowPrivate: boolean;
}

/** Headers that prove who asks, and the origin that they are for. */
export interface Credentials {
  origin: string;
  headers: Readonly<Record<string, string>>;
}

/** A request to an address given by a user. */
export interface GuardedRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT';
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** Sent to this origin only, wherever a redirect leads. */
  credentials?: Credentials | undefined;
  /** Largest number of redirects to follow; each is checked like the first address. Default: 0. */
  redirects?: number;
  /** Statuses that are a success. Default: 200. */
  accepts?: readonly number[];
  /** Appended to "answered 404 for /path" (also for 401 and 403): the likely cause and what to do. */
  hint?: string;
  signal: AbortSignal;
}

/** A response with a status that is a success. */
export interface GuardedResponse {
  /** The final URL after redirects. */
  url: URL;
  headers: IncomingHttpHeaders;
  /** Throws AppError validation_failed if the connection breaks. */
  body: AsyncIterable<Uint8Array>;
}

const idleMilliseconds = 30_000;

/**
 * Sends a request to an address given by a user: by HTTPS, to a public IP address, and to exactly the address that was checked.
 * @throws AppError validation_failed for any other status
 */
export async function guardedRequest(url: URL, asked: GuardedRequest, options: GuardedRequestOptions): Promise<GuardedResponse> {
  let target = url;
  for (let left = asked.redirects ?? 0; ; left--) {
    const response = await requestOnce(target, asked, options);
    const status = response.statusCode ?? 0;
    if ((asked.accepts ?? [200]).includes(status))
      return { url: target, headers: response.headers, body: bodyOf(response, target) };
    response.destroy();
    const { location } = response.headers;
    if (status < 300 || status > 399 || location === undefined) throw answered(target, status, asked.hint ?? '');
    if (left === 0 || !URL.canParse(location, target)) throw fault(`${target.host} redirects too often or to an invalid address`);
    target = new URL(location, target);
  }
}

/** @throws AppError validation_failed for plain HTTP, unless hosts in private networks are allowed */
export function requireHttps({ protocol, host }: URL, allowPrivate: boolean): void {
  if (protocol !== 'https:' && !(allowPrivate && protocol === 'http:'))
    throw fault(`${protocol}//${host} is not supported: use https`);
}

async function requestOnce(
  url: URL,
  asked: GuardedRequest,
  { lookUp, allowPrivate }: GuardedRequestOptions,
): Promise<IncomingMessage> {
  const secure = url.protocol === 'https:';
  requireHttps(url, allowPrivate);
  if (url.username !== '' || url.password !== '') throw fault('A URL with a user name or password is not supported');
  const pinned = await resolveHost(url.hostname, lookUp, allowPrivate);
  asked.signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = (secure ? requestHttps : requestHttp)(url, {
    method: asked.method,
    headers: {
      ...asked.headers,
      ...(asked.credentials?.origin === url.origin ? asked.credentials.headers : {}),
      ...(asked.body === undefined ? {} : { 'content-length': asked.body.length }),
    },
    agent: false,
    signal: asked.signal,
    // Node asks for all addresses of the name; it gets only the one that was checked.
    lookup: (_host, { all }, done) => (all === true ? done(null, [pinned]) : done(null, pinned.address, pinned.family)),
  });
  sent.setTimeout(idleMilliseconds, () => sent.destroy(new Error(`nothing for ${idleMilliseconds / 1000} s`)));
  sent.on('response', resolve);
  sent.on('error', (error) => reject(asked.signal.aborted ? asked.signal.reason : unreachable(url, error)));
  sent.end(asked.body);
  return promise;
}

async function* bodyOf(response: IncomingMessage, url: URL): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of response) yield chunk as Uint8Array;
  } catch (error) {
    throw unreachable(url, error);
  } finally {
    response.destroy();
  }
}

/** Statuses of a host that may answer the same request later. */
const passing = [408, 425, 429, 500, 502, 503, 504];

function answered({ host, pathname }: URL, status: number, hint: string): AppError {
  if (passing.includes(status)) return new SourceUnavailable(`${host} answered ${status} for ${pathname}.`);
  return fault(`${host} answered ${status} for ${pathname}${[401, 403, 404].includes(status) ? hint : ''}`);
}

function unreachable(url: URL, error: unknown): AppError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new SourceUnavailable(`${url.host} could not be reached (${code ?? message}).`, error);
}

function fault(message: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `${message}.`, { cause });
}
