import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { AppError } from '#shared/errors.ts';
import { type LookUp, resolveHost } from '#shared/sources/resolve-host.ts';

export interface GuardedRequestOptions {
  lookUp: LookUp;
  /** Also plain HTTP, and hosts in private networks. */
  allowPrivate: boolean;
}

export interface GuardedRequest {
  method: 'GET' | 'POST';
  headers: Readonly<Record<string, string>>;
  body?: Uint8Array;
  /** How many redirects are followed; each is checked like the first address. Default 0. */
  redirects?: number;
  /** Goes on after "answered 404 for /path": what it may mean, and what to do about it. Likewise for 401 and 403. */
  hint?: string;
  signal: AbortSignal;
}

export interface GuardedResponse {
  /** Where it came from in the end. */
  url: URL;
  headers: IncomingHttpHeaders;
  /** Rejects with AppError when the connection breaks. */
  body: AsyncIterable<Uint8Array>;
}

const idleMilliseconds = 30_000;

/**
 * A request to an address that a user gave: to the open internet, by HTTPS, to the address that was checked.
 * @throws AppError validation_failed for any answer but 200
 */
export async function guardedRequest(url: URL, asked: GuardedRequest, options: GuardedRequestOptions): Promise<GuardedResponse> {
  let target = url;
  for (let left = asked.redirects ?? 0; ; left--) {
    const response = await requestOnce(target, asked, options);
    const status = response.statusCode ?? 0;
    if (status === 200) return { url: target, headers: response.headers, body: bodyOf(response, target) };
    response.destroy();
    const { location } = response.headers;
    if (status < 300 || status > 399 || location === undefined) throw answered(target, status, asked.hint ?? '');
    if (left === 0 || !URL.canParse(location, target)) throw fault(`${target.host} redirects too often, or nowhere`);
    target = new URL(location, target);
  }
}

async function requestOnce(
  url: URL,
  asked: GuardedRequest,
  { lookUp, allowPrivate }: GuardedRequestOptions,
): Promise<IncomingMessage> {
  const secure = url.protocol === 'https:';
  if (!secure && !(allowPrivate && url.protocol === 'http:'))
    throw fault(`${url.protocol}//${url.host} is not fetched from, only https is`);
  if (url.username !== '' || url.password !== '') throw fault('An address with a password in it is not fetched from');
  const pinned = await resolveHost(url.hostname, lookUp, allowPrivate);
  asked.signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const sent = (secure ? requestHttps : requestHttp)(url, {
    method: asked.method,
    headers: { ...asked.headers, ...(asked.body === undefined ? {} : { 'content-length': asked.body.length }) },
    agent: false,
    signal: asked.signal,
    // Node asks for all addresses of a name; it gets the one that was checked.
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

function answered({ host, pathname }: URL, status: number, hint: string): AppError {
  return fault(`${host} answered ${status} for ${pathname}${[401, 403, 404].includes(status) ? hint : ''}`);
}

function unreachable(url: URL, error: unknown): AppError {
  const { code, message } = error as NodeJS.ErrnoException;
  return fault(`${url.host} could not be reached (${code ?? message})`, error);
}

function fault(message: string, cause?: unknown): AppError {
  return new AppError('validation_failed', `${message}.`, { cause });
}
