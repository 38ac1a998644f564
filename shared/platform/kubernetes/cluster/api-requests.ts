import { HttpMethod, type KubeConfig, RequestContext } from '@kubernetes/client-node';
import { type Dispatcher, fetch, type Response } from 'undici';
import { pause } from './pause.ts';
import { unreachable } from './refusals.ts';

/** One request to the API server. */
export interface ApiRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With its query. */
  path: string;
  body?: object;
  /** Of the body; JSON when it is left out. */
  contentType?: string;
  /** Again after a failure on the way. False where a second try could not be told from the first. */
  retry?: boolean;
}

export interface ApiRequests {
  readonly server: string;
  /**
   * The answer, whatever its status is, but 429 and 5xx after a few attempts only.
   * @throws AppError 'internal' when the API server cannot be reached
   */
  send(request: ApiRequest, signal?: AbortSignal): Promise<Response>;
}

const attempts = 4;
const firstPauseMilliseconds = 200;
const longestPauseMilliseconds = 60_000;
const timeoutMilliseconds = 30_000;
const never = new AbortController().signal;

/**
 * Requests with the credentials of a kubeconfig. The connections are kept: the client's own API makes a new dispatcher, and so
 * a new connection with its TLS handshake, for each request (seen in 2.0.1), which is why only its authentication is used.
 */
export function createApiRequests(config: KubeConfig): ApiRequests {
  const server = config.getCurrentCluster()?.server.replace(/\/$/, '');
  if (server === undefined) throw new Error('The kubeconfig names no cluster.');
  let connections: Dispatcher | undefined;

  async function attempt({ method, path, body, contentType }: ApiRequest, signal: AbortSignal): Promise<Response> {
    const url = `${server}${path}`;
    const context = new RequestContext(url, HttpMethod[method]);
    // Each time: tokens of service accounts are renewed.
    await config.applySecurityAuthentication(context);
    connections ??= context.getDispatcher();
    const headers: Record<string, string> = { ...context.getHeaders(), accept: 'application/json' };
    if (body !== undefined) headers['content-type'] = contentType ?? 'application/json';
    return await fetch(url, {
      method,
      headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(connections === undefined ? {} : { dispatcher: connections }),
    });
  }

  return {
    server,
    async send(request, signal) {
      for (let count = 1; ; count += 1) {
        const last = count === attempts || request.retry === false;
        let milliseconds = firstPauseMilliseconds * 2 ** (count - 1) * (0.5 + Math.random());
        try {
          const response = await attempt(request, signal ?? AbortSignal.timeout(timeoutMilliseconds));
          const busy = response.status === 429;
          // Of a request that was refused for its rate nothing has happened: it may be sent again in any case.
          if (!(busy || response.status >= 500) || (last && !(busy && count < attempts))) return response;
          milliseconds = Math.max(milliseconds, requestedPause(response));
          await response.body?.cancel();
        } catch (error) {
          signal?.throwIfAborted();
          if (last && !(isRefusedConnection(error) && count < attempts)) throw unreachable(server, error);
        }
        await pause(milliseconds, signal ?? never);
        signal?.throwIfAborted();
      }
    },
  };
}

/** What the API server asks for by `Retry-After`, in seconds; a date, or nonsense of a proxy, counts as nothing. */
function requestedPause({ headers }: Response): number {
  const seconds = Number(headers.get('retry-after') ?? 0);
  return Number.isFinite(seconds) ? Math.min(seconds * 1000, longestPauseMilliseconds) : 0;
}

/** Nothing of the request has arrived. */
function isRefusedConnection(error: unknown): boolean {
  return error instanceof Error && (error.cause as NodeJS.ErrnoException | undefined)?.code === 'ECONNREFUSED';
}
