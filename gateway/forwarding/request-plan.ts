import { hostOfAuthority } from './host.ts';

/** What of an inbound request decides how it is passed on. */
export interface InboundRequest {
  readonly method: string;
  /** The request target as sent. */
  readonly target: string;
  readonly httpVersion: string;
  /** Name, value, name, value … as sent. */
  readonly rawHeaders: readonly string[];
  readonly remoteAddress: string;
  readonly localPort: number;
  readonly encrypted: boolean;
  readonly requestId: string;
}

export interface RequestPlan {
  /** Lower case, no port, no trailing dot. */
  readonly host: string;
  /** Origin form, or '*'. */
  readonly path: string;
  /** Name, value, name, value … to send on. */
  readonly headers: string[];
  readonly hasBody: boolean;
  /** May be sent a second time when nothing of an answer came: idempotent, and no body or trailers to be negotiated. */
  readonly replayable: boolean;
  readonly accept: string;
}

/** A request that is not passed on; `message` goes to the client. */
export interface RequestFault {
  readonly status: 400 | 405 | 501;
  readonly message: string;
}

const idempotentMethods = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);

/** Headers about one connection, and those the gateway alone may set. With "_" too, which CGI-like servers read as "-". */
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

/** `upgrade`: the value of the Upgrade header when the request is to be tunnelled. */
export function planRequest(inbound: InboundRequest, upgrade?: string): RequestPlan | RequestFault {
  const { rawHeaders, method } = inbound;
  const kept: string[] = [];
  let hostHeader: string | undefined;
  let contentLength: string | undefined;
  let transferEncoding: string | undefined;
  let connectionOptions = '';
  let accept = '';
  let trailers = false;

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
          return fault('The Content-Length header is not one number.');
        contentLength = value;
        continue;
      case 'transfer-encoding':
        if (transferEncoding !== undefined || value.toLowerCase() !== 'chunked') {
          return { status: 501, message: 'The only Transfer-Encoding this server takes is "chunked".' };
        }
        transferEncoding = value;
        continue;
      case 'connection':
        connectionOptions += `,${value.toLowerCase()}`;
        continue;
      case 'te':
        trailers = /(^|,)\s*trailers\s*(,|$)/i.test(value);
        continue;
      case 'accept':
        accept = value;
        break;
    }
    if (droppedHeaders.has(lower.includes('_') ? lower.replaceAll('_', '-') : lower)) continue;
    kept.push(name, value);
  }

  if (method === 'TRACE' || method === 'CONNECT') return { status: 405, message: `${method} is not served here.` };
  if (contentLength !== undefined && transferEncoding !== undefined) {
    return fault('A request has either a Content-Length or a Transfer-Encoding, not both.');
  }
  if (transferEncoding !== undefined && inbound.httpVersion !== '1.1') return fault('Transfer-Encoding needs HTTP/1.1.');
  const authority = hostHeader ?? '';
  const host = hostOfAuthority(authority);
  if (host === undefined) return fault('The Host header is missing or not a host name.');
  const path = originForm(inbound.target, authority);
  if (path === undefined) return fault('The request target is neither a path nor a URL of the host in the Host header.');

  const headers = ['Host', authority, ...withoutNamed(kept, connectionOptions)];
  const hasBody = transferEncoding !== undefined || (contentLength !== undefined && contentLength !== '0');
  if (transferEncoding !== undefined) headers.push('Transfer-Encoding', 'chunked');
  else if (contentLength !== undefined) headers.push('Content-Length', contentLength);
  else if (method !== 'GET' && method !== 'HEAD') headers.push('Content-Length', '0');
  headers.push(
    'X-Forwarded-For',
    inbound.remoteAddress,
    'X-Forwarded-Proto',
    inbound.encrypted ? 'https' : 'http',
    'X-Forwarded-Host',
    authority,
    'X-Forwarded-Port',
    String(inbound.localPort),
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
    accept,
  };
}

function fault(message: string): RequestFault {
  return { status: 400, message };
}

/** The path of a target in origin or absolute form; undefined when it names another authority, or is none of these. */
function originForm(target: string, authority: string): string | undefined {
  if (target.startsWith('/') || target === '*') return target;
  const match = /^https?:\/\/([^/?#]*)([^#]*)$/i.exec(target);
  if (match?.[1]?.toLowerCase() !== authority.toLowerCase()) return undefined;
  const rest = match[2] ?? '';
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** Drops the headers that the Connection header declares to be about the connection only. */
function withoutNamed(headers: string[], connectionOptions: string): string[] {
  if (connectionOptions === '' || connectionOptions === ',keep-alive' || connectionOptions === ',close') return headers;
  const named = new Set(connectionOptions.split(',').map((option) => option.trim()));
  for (const usual of ['', 'close', 'keep-alive', 'upgrade', 'te']) named.delete(usual);
  if (named.size === 0) return headers;
  return headers.filter((_, index) => !named.has((headers[index - (index % 2)] ?? '').toLowerCase()));
}

const connectionHeaders = new Set(['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade', 'te']);

/** An answer's headers without those about the upstream's connection. */
export function answerHeaders(rawHeaders: readonly string[]): string[] {
  const headers: string[] = [];
  let connectionOptions = '';
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const value = rawHeaders[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (lower === 'connection') connectionOptions += `,${value.toLowerCase()}`;
    if (!connectionHeaders.has(lower)) headers.push(name, value);
  }
  return withoutNamed(headers, connectionOptions);
}
