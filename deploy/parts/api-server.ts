import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server';
import { StatusError, toAppError, toRefusal } from '#api/http/refusal.ts';
import type { Clock } from '#shared/clock.ts';
import type { AppError } from '#shared/errors.ts';
import type { Log } from '#shared/log.ts';
import { newRequestId } from '#shared/request-id.ts';

export interface ApiServerOptions {
  readonly fetch: (request: Request, connection: HttpBindings) => Promise<Response> | Response;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Pick<Log, 'error'>;
  /** A client may take this long to send a request, unless it pushes over HTTP: the gateway ends that when it takes too long. */
  readonly bodySeconds: number;
}

/**
 * The server of the API for the gateway on the same machine, which limits the headers of requests before they get here. What never
 * becomes a request for `fetch` is answered with the error envelope, too.
 */
export function createApiServer({ fetch, clock, log, bodySeconds }: ApiServerOptions): Server {
  const refuse = (error: AppError) => toRefusal(error, newRequestId(), clock.now());
  const pushes = new WeakSet<Duplex>();
  const answer = (request: Request, connection: HttpBindings): Promise<Response> | Response =>
    mayHaveBody(request) ? closeUnlessRead(fetch(request, connection), connection) : fetch(request, connection);
  const listener = getRequestListener((request, connection) => answer(request, connection as HttpBindings), {
    errorHandler: (error) => {
      if (!(error instanceof RequestError)) log.error('a request failed outside of the API', { error });
      const { status, body } = refuse(
        error instanceof RequestError ? invalid(400, 'The request has no valid URL.') : toAppError(error),
      );
      return Response.json(body, { status, headers: { 'x-request-id': body.error.request_id } });
    },
  });
  const serve = (request: IncomingMessage, response: ServerResponse): void => {
    if (isPush(request)) pushes.add(request.socket);
    void listener(request, response);
  };
  const server = createServer(
    {
      // The gateway accepts 32 KiB and adds headers of its own.
      maxHeaderSize: 64 * 1024,
      requestTimeout: bodySeconds * 1000,
      headersTimeout: Math.min(bodySeconds, 60) * 1000,
      connectionsCheckingInterval: Math.min(bodySeconds * 100, 30_000),
    },
    serve,
  );
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueWhenRead(request, response);
    serve(request, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    const isLate = error.code === 'ERR_HTTP_REQUEST_TIMEOUT';
    if (isLate && pushes.has(socket)) return;
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const { status, body } = isLate
      ? refuse(invalid(408, `The request did not arrive within ${bodySeconds} s.`))
      : refuse(invalid(400, 'The request is not valid HTTP/1.1.'));
    const text = JSON.stringify(body);
    const head = [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
      `X-Request-Id: ${body.error.request_id}`,
      'Connection: close',
    ];
    socket.end([...head, '', text].join('\r\n'), () => socket.destroy());
  });
  return server;
}

function invalid(status: 400 | 408, message: string): StatusError {
  return new StatusError(status, 'validation_failed', message);
}

function mayHaveBody({ method }: Request): boolean {
  return method !== 'GET' && method !== 'HEAD';
}

/** A body of this size is read to its end soon, even if nobody needs it. */
const smallBytes = 64 * 1024;

/**
 * After an answer before the end of a large body, the server may end the connection. Without notice, the client would send its next
 * request on it.
 */
async function closeUnlessRead(answer: Promise<Response> | Response, { incoming, outgoing }: HttpBindings): Promise<Response> {
  const response = await answer;
  const isSmall = Number(incoming.headers['content-length'] ?? Number.POSITIVE_INFINITY) <= smallBytes;
  if (!isSmall && !incoming.complete && !outgoing.headersSent) outgoing.setHeader('connection', 'close');
  return response;
}

/** Whether a git client sends a pack. The gateway does not use its connection for other requests. */
function isPush({ method, url }: IncomingMessage): boolean {
  return method === 'POST' && url?.endsWith('.git/git-receive-pack') === true;
}

/** Asks for the body as soon as something reads it: a request that is refused by its headers never sends it. */
function continueWhenRead(request: IncomingMessage, response: ServerResponse): void {
  const read = request._read.bind(request);
  let asked = false;
  request._read = (size) => {
    if (!asked && !response.headersSent) response.writeContinue();
    asked = true;
    read(size);
  };
}
