import { type Client, clientOf, type IsTrusted } from './client.ts';
import { confineCookie } from './cookies.ts';
import { hostOfAuthority } from './host.ts';
import { takeVisitorCookie } from './visitor.ts';

/** The parts of an inbound request that decide how it is forwarded. */
export interface InboundRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  /** The peer of the connection. */
  readonly connection: Client;
  readonly requestId: string;
}

/** How a request is forwarded. */
export interface RequestPlan {
  /** Lower case, no port, no trailing dot. */
  readonly host: string;
  /** Origin form, or '*'. */
  readonly path: string;
  /** Names and values in turn. */
  readonly headers: string[];
  readonly hasBody: boolean;
  /** May be sent again when there was no response: idempotent, without a body, and without trailers to negotiate. */
  readonly replayable: boolean;
  readonly client: Client;
  /** The bucket in the gateway's own cookie, which is not forwarded. Undefined without one. */
  readonly visitorCookie: number | undefined;
  /** The Accept header, '' without one. */
  readonly accept: string;
}

/** Why a request is not forwarded; `message` is for the client. */
export interface RequestFault {
  readonly status: 400 | 405 | 501;
  readonly message: string;
  /** As in a plan; undefined if the request names no host. */
  readonly host: string | undefined;
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Headers about one connection, and headers that only the gateway may set; also with "_", which CGI servers read as "-". */
const droppedHeaders = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-ssl',
  'x-forwarded-server',
  'x-forwarded-by',
  'x-real-ip',
  'x-request-id',
  'host',
  'content-length',
  'http2-settings',
]);

/**
 * Plans how a request is forwarded. A request that two servers could read differently is refused (request smuggling).
 * @param isTrusted proxies that are believed who their client is
 * @param upgrade the Upgrade header of a request that asks for an upgrade
 */
export function planRequest(inbound: InboundRequest, isTrusted: IsTrusted, upgrade?: string): RequestPlan | RequestFault {
  const { rawHeaders, method } = inbound;
  const forwarded: string[] = [];
  let hostHeader: string | undefined;
  let contentLength: string | undefined;
  let transferEncoding: string | undefined;
  let connectionOptions = '';
  let accept = '';
  let trailers = false;
  const reported = new Map<string, string>();
  let visitorCookie: number | undefined;
  const fault = (message: string, status: RequestFault['status'] = 400): RequestFault => ({
    status,
    message,
    host: hostOfAuthority(hostHeader ?? ''),
  });

  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const lower = name.toLowerCase();
    switch (lower) {
      case 'host':
        if (hostHeader !== undefined) return fault('The Host header was sent twice.');
        hostHeader = value;
        continue;
      case 'content-length':
        if (contentLength !== undefined || !/^\d{1,15}$/.test(value))
          return fault('The Content-Length header is not a single number.');
        contentLength = value;
        continue;
      case 'transfer-encoding':
        if (transferEncoding !== undefined || value.toLowerCase() !== 'chunked') {
          return fault('The only supported Transfer-Encoding is "chunked".', 501);
        }
        transferEncoding = value;
        continue;
      case 'connection':
        connectionOptions += `,${value.toLowerCase()}`;
        continue;
      case 'te':
        trailers = /(^|,)\s*trailers\s*(,|$)/i.test(value);
        continue;
      case 'cookie': {
        const { rest, bucket } = takeVisitorCookie(value);
        visitorCookie = bucket ?? visitorCookie;
        if (rest !== '') forwarded.push(name, rest);
        continue;
      }
      case 'accept':
        accept = value;
        break;
      case 'x-forwarded-for':
      case 'x-forwarded-proto':
      case 'x-forwarded-port':
        reported.set(lower, reported.has(lower) ? `${reported.get(lower)},${value}` : value);
        continue;
    }
    if (droppedHeaders.has(lower.includes('_') ? lower.replaceAll('_', '-') : lower)) continue;
    forwarded.push(name, value);
  }

  if (method === 'TRACE' || method === 'CONNECT') return fault(`The method ${method} is not supported.`, 405);
  if (contentLength !== undefined && transferEncoding !== undefined) {
    return fault('A request must not have both a Content-Length and a Transfer-Encoding.');
  }
  if (transferEncoding !== undefined && inbound.httpVersion !== '1.1') return fault('Transfer-Encoding requires HTTP/1.1.');
  const authority = hostHeader ?? '';
  const host = hostOfAuthority(authority);
  if (host === undefined) return fault('The Host header is missing or not a host name.');
  const path = originForm(inbound.target, authority);
  if (path === undefined) return fault('The request target is neither a path nor a URL with the host of the Host header.');

  const headers = ['Host', authority, ...withoutConnectionHeaders(forwarded, connectionOptions)];
  const hasBody = transferEncoding !== undefined || (contentLength !== undefined && contentLength !== '0');
  if (transferEncoding !== undefined) headers.push('Transfer-Encoding', 'chunked');
  else if (contentLength !== undefined) headers.push('Content-Length', contentLength);
  else if (method !== 'GET' && method !== 'HEAD') headers.push('Content-Length', '0');
  const client = clientOf(
    inbound.connection,
    {
      addresses: reported.get('x-forwarded-for'),
      protocols: reported.get('x-forwarded-proto'),
      ports: reported.get('x-forwarded-port'),
    },
    isTrusted,
  );
  headers.push(
    'X-Forwarded-For',
    client.address,
    'X-Forwarded-Proto',
    client.encrypted ? 'https' : 'http',
    'X-Forwarded-Host',
    authority,
    'X-Forwarded-Port',
    String(client.port),
    'X-Request-Id',
    inbound.requestId,
  );
  if (trailers && upgrade === undefined) headers.push('TE', 'trailers', 'Connection', 'TE');
  if (upgrade !== undefined) headers.push('Connection', 'Upgrade', 'Upgrade', upgrade);
  return {
    host,
    path,
    headers,
    hasBody,
    replayable: !hasBody && !trailers && upgrade === undefined && idempotentMethods.has(method),
    client,
    visitorCookie,
    accept,
  };
}

/** The path of a target in origin or absolute form (RFC 9112 §3.2). Undefined for another authority and other forms. */
function originForm(target: string, authority: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target;
  const match = /^https?:\/\/([^/?#]*)([^#]*)$/i.exec(target);
  if (match?.[1]?.toLowerCase() !== authority.toLowerCase()) return undefined;
  const rest = match[2] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Drops the headers that the Connection header names (RFC 9110 §7.6.1). */
function withoutConnectionHeaders(headers: string[], connectionOptions: string): string[] {
  if (connectionOptions === '' || connectionOptions === ',keep-alive' || connectionOptions === ',close') return headers;
  const named = new Set(connectionOptions.split(',').map((option) => option.trim()));
  for (const usual of ['', 'close', 'keep-alive', 'upgrade', 'te']) named.delete(usual);
  if (named.size === 0) return headers;
  return headers.filter((_, index) => !named.has((headers[index - (index % 2)] ?? '').toLowerCase()));
}

const connectionHeaders = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te']);

/**
 * The headers of a response without those about the upstream's connection, and with cookies for the host alone. Names and values
 * in turn.
 * @param platformDomains see `confineCookie`
 */
export function responseHeaders(rawHeaders: readonly string[], platformDomains: readonly string[]): string[] {
  const headers: string[] = [];
  let connectionOptions = '';
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (lower === 'connection') connectionOptions += `,${value.toLowerCase()}`;
    if (connectionHeaders.has(lower)) continue;
    headers.push(name, lower === 'set-cookie' ? confineCookie(value, platformDomains) : value);
  }
  return withoutConnectionHeaders(headers, connectionOptions);
}

/** Pairs of name and value. @param raw names and values in turn */
export function headerPairs(raw: readonly string[]): [name: string, value: string][] {
  return raw.flatMap((name, index): [string, string][] => (index % 2 === 0 ? [[name, raw[index + 1] ?? '']] : []));
}
