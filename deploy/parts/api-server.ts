import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { getRequestListener } from '@hono/node-server';
import { StatusError, toRefusal } from '#api/http/refusal.ts';
import type { Clock } from '#shared/clock.ts';
import { newRequestId } from '#shared/request-id.ts';

/**
 * The server of the API for the gateway on the same machine, which limits size and time of requests before they get here. What
 * never becomes a request for `fetch` is answered with the error envelope, too.
 */
export function createApiServer(fetch: (request: Request) => Promise<Response> | Response, clock: Pick<Clock, 'now'>): Server {
  const refuse = (message: string) => toRefusal(new StatusError(400, 'validation_failed', message), newRequestId(), clock.now());
  const listener = getRequestListener(fetch, {
    errorHandler: () => {
      const { status, body } = refuse('The request has no valid URL.');
      return Response.json(body, { status, headers: { 'x-request-id': body.error.request_id } });
    },
  });
  const serve = (request: IncomingMessage, response: ServerResponse): void => void listener(request, response);
  const server = createServer(
    {
      // The gateway accepts 32 KiB and adds headers of its own.
      maxHeaderSize: 64 * 1024,
      // A push may take longer than the 5 minutes that are usual. The gateway ends requests that take too long.
      requestTimeout: 0,
    },
    serve,
  );
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    continueWhenRead(request, response);
    serve(request, response);
  });
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy();
    const { body } = refuse('The request is not valid HTTP/1.1.');
    const text = JSON.stringify(body);
    const head = [
      'HTTP/1.1 400 Bad Request',
      'Content-Type: application/json',
      `Content-Length: ${Buffer.byteLength(text)}`,
      `X-Request-Id: ${body.error.request_id}`,
      'Connection: close',
    ];
    socket.end([...head, '', text].join('\r\n'), () => socket.destroy());
  });
  return server;
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
