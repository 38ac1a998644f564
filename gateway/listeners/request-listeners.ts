import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type Client, type IsTrusted, plainAddress } from '#gateway/forwarding/client.ts';
import { createConnectionPool } from '#gateway/forwarding/connection-pool.ts';
import { forwardRequest } from '#gateway/forwarding/forward-request.ts';
import type { ForwardTimeouts } from '#gateway/forwarding/forward-timeouts.ts';
import { forwardUpgrade } from '#gateway/forwarding/forward-upgrade.ts';
import { planRequest, type RequestFault, type RequestPlan } from '#gateway/forwarding/request-plan.ts';
import { identifyVisitor, type Visitor } from '#gateway/forwarding/visitor.ts';
import { newRequestId } from '#shared/request-id.ts';
import type { ConnectionShares } from './connection-shares.ts';
import type { Destinations } from './destinations.ts';
import {
  badRequest,
  type ErrorResponse,
  type RenderedResponse,
  renderErrorResponse,
  tooManyConnections,
} from './error-responses.ts';
import { hasBegunResponse } from './response-in-progress.ts';

export interface RequestListenersOptions {
  readonly destinations: Destinations;
  readonly shares: ConnectionShares;
  readonly timeouts: ForwardTimeouts;
  readonly isTrusted: IsTrusted;
  /** See `confineCookie`. */
  readonly platformDomains: readonly string[];
  readonly now: () => Date;
}

/** Listeners for the events of a server of node:http or node:https. */
export interface RequestListeners {
  request(request: IncomingMessage, response: ServerResponse): void;
  checkContinue(request: IncomingMessage, response: ServerResponse): void;
  checkExpectation(request: IncomingMessage, response: ServerResponse): void;
  connect(request: IncomingMessage, socket: Duplex): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  clientError(error: ClientError, socket: Duplex): void;
  /** For a connection that is one too many of its source. */
  tooManyConnections(socket: Duplex): void;
}

/** An error that node:http reports before there is a request. */
export interface ClientError extends NodeJS.ErrnoException {
  /** The bytes in which the parser found the error. */
  readonly rawPacket?: Buffer;
}

/** Forwards each request to its destination, or answers with an error response. */
export function createRequestListeners(options: RequestListenersOptions): RequestListeners {
  const { destinations, shares, timeouts, isTrusted, platformDomains, now } = options;
  const pool = createConnectionPool(timeouts);

  /** @param upgrade the Upgrade header of a request that asks for an upgrade */
  const readRequest = (request: IncomingMessage, upgrade?: string): { requestId: string; plan: RequestPlan | RequestFault } => {
    const requestId = newRequestId();
    const { socket, method = '', url: target = '', httpVersion, rawHeaders } = request;
    const connection: Client = {
      address: plainAddress(socket.remoteAddress),
      port: socket.localPort ?? 0,
      encrypted: 'encrypted' in socket,
    };
    return {
      requestId,
      plan: planRequest({ method, target, httpVersion, rawHeaders, connection, requestId }, isTrusted, upgrade),
    };
  };

  const render = (response: ErrorResponse, plan: RequestPlan | RequestFault, requestId: string): RenderedResponse =>
    renderErrorResponse(response, 'path' in plan ? plan.accept : '', requestId, now());

  /** Only requests for an app get a text: who asks for another host is a client of the API, or its request is not understood. */
  const faultResponse = ({ status, message, host }: Omit<RequestFault, 'status'> & { readonly status: number }): ErrorResponse =>
    badRequest(status, message, host === undefined || destinations.isApi(host));

  const refuseRequest = (
    response: ServerResponse,
    errorResponse: ErrorResponse,
    plan: RequestPlan | RequestFault,
    requestId: string,
  ): void => {
    const { status, headers, body } = render(errorResponse, plan, requestId);
    // After an invalid request, or one whose body nobody reads, the connection cannot be used again.
    if (!('path' in plan) || plan.hasBody) response.setHeader('Connection', 'close');
    response.writeHead(status, headers).end(body);
  };

  const serve = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    const { requestId, plan } = readRequest(request);
    const refuse = (errorResponse: ErrorResponse): void => refuseRequest(response, errorResponse, plan, requestId);
    if (!('path' in plan)) return refuse(faultResponse(plan));
    const destination = destinations.find(plan.host);
    if (!('upstreams' in destination)) return refuse(destination);
    const { upstreams, errorResponse } = destination;
    if (!shares.take(destination.key, response)) return refuse(destination.overloaded());
    forwardRequest(request, response, {
      plan,
      upstreams,
      visitor: upstreams.dependsOnVisitor ? visitorOf(plan) : undefined,
      pool,
      timeouts,
      platformDomains,
      expectsContinue: expectsContinue && plan.hasBody,
      fail: (failure) => refuse(errorResponse(failure)),
    });
  };

  return {
    request: (request, response) => serve(request, response, false),
    checkContinue: (request, response) => serve(request, response, true),
    checkExpectation(request, response) {
      const { requestId, plan } = readRequest(request);
      const message = 'The only supported Expect header is "100-continue".';
      refuseRequest(
        response,
        'path' in plan ? faultResponse({ status: 417, message, host: plan.host }) : faultResponse(plan),
        plan,
        requestId,
      );
    },
    connect(request, socket) {
      socket.on('error', () => socket.destroy());
      const { requestId, plan } = readRequest(request);
      if ('path' in plan) socket.destroy();
      else endWith(socket, render(faultResponse(plan), plan, requestId));
    },
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy());
      const { requestId, plan } = readRequest(request, request.headers.upgrade);
      const refuse = (errorResponse: ErrorResponse): void => {
        endWith(socket, render(errorResponse, plan, requestId));
      };
      if (!('path' in plan)) return refuse(faultResponse(plan));
      const destination = destinations.find(plan.host);
      if (!('upstreams' in destination)) return refuse(destination);
      const { upstreams, errorResponse } = destination;
      if (!shares.take(destination.key, socket)) return refuse(destination.overloaded());
      forwardUpgrade(request, socket, head, {
        plan,
        upstreams,
        visitor: upstreams.dependsOnVisitor ? visitorOf(plan) : undefined,
        timeouts,
        platformDomains,
        fail: (failure) => refuse(errorResponse(failure)),
      });
    },
    tooManyConnections(socket) {
      socket.on('error', () => socket.destroy());
      endWith(socket, renderErrorResponse(tooManyConnections, '', newRequestId(), now()));
    },
    clientError(error, socket) {
      if (error.code === 'ECONNRESET' || !socket.writable || hasBegunResponse(socket)) return void socket.destroy();
      endWith(socket, renderErrorResponse(clientErrorResponse(error), '', newRequestId(), now()));
    },
  };
}

function visitorOf({ visitorCookie, client }: RequestPlan): Visitor {
  return identifyVisitor(visitorCookie, client.address, client.encrypted);
}

/** A request line whose method node:http does not know. */
const requestLine = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ [\x21-\x7e]+ HTTP\/1\.[01]\r\n/;

/** Always the envelope: it is not known whose host the request was for. */
function clientErrorResponse({ code, rawPacket }: ClientError): ErrorResponse {
  switch (code ?? '') {
    case 'HPE_HEADER_OVERFLOW':
      return badRequest(431, 'The URL and the headers of the request are larger than 32 KiB.', true);
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return badRequest(413, 'The chunk extensions of the request are larger than 16 KiB.', true);
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return badRequest(408, 'The request did not arrive in time.', true);
    case 'HPE_INVALID_METHOD':
      if (requestLine.test(rawPacket?.toString('latin1') ?? ''))
        return badRequest(405, 'The method of the request is not supported.', true);
      break;
    default:
      break;
  }
  return badRequest(400, 'The request is not valid HTTP/1.1.', true);
}

/** How long a connection stays open after its last response, so that the client can read it. */
const lingerMilliseconds = 1000;

/** Sends a response on a connection that has no ServerResponse, and closes the connection even if the client does not. */
function endWith(socket: Duplex, { status, headers, body }: RenderedResponse): void {
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Error'}`, ...lines, '', body].join('\r\n'));
  // What the client still sends is read: with unread bytes the connection would be reset, and the response lost.
  socket.resume();
  const deadline = setTimeout(() => socket.destroy(), lingerMilliseconds);
  deadline.unref();
  socket.once('close', () => clearTimeout(deadline));
}
