import { request as httpRequest } from 'node:http';
import { Readable } from 'node:stream';
import { reachableSocketPath } from './unix-socket.ts';

/**
 * `fetch` to a server on a unix socket. The host of a request's URL is not used. Connections are not kept.
 * @throws Error the system's, when nobody listens
 */
export function createSocketFetch(socketPath: string): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = new Uint8Array(await request.arrayBuffer());
    const { pathname, search } = new URL(request.url);
    return new Promise((resolve, reject) => {
      const outgoing = httpRequest({
        socketPath: reachableSocketPath(socketPath),
        method: request.method,
        path: `${pathname}${search}`,
        headers: { ...Object.fromEntries(request.headers), 'content-length': body.length },
        agent: false,
        signal: request.signal,
      });
      outgoing.once('error', reject);
      outgoing.once('response', (incoming) => {
        // An aborted request ends the response with an error, which the reader of the body gets.
        const headers = Object.entries(incoming.headers).flatMap(([name, value]): [string, string][] =>
          typeof value === 'string' ? [[name, value]] : [],
        );
        resolve(
          new Response(Readable.toWeb(incoming) as ReadableStream<Uint8Array>, { status: incoming.statusCode ?? 500, headers }),
        );
      });
      outgoing.end(body);
    });
  };
}
