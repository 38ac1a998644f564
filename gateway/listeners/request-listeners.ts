import type { IncomingMessage, ServerOptions, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { createKeptConnections } from '../forwarding/connection-pool.ts';
import { type ForwardFailure, forwardRequest } from '../forwarding/forward-request.ts';
import type { ForwardTimeouts } from '../forwarding/forward-timeouts.ts';
import { forwardUpgrade } from '../forwarding/forward-upgrade.ts';
import { isAddress } from '../forwarding/host.ts';
import { planRequest, type RequestFault, type RequestPlan } from '../forwarding/request-plan.ts';
import type { RouteTable } from '../routes/route-table.ts';
import { type ChooseUpstream, noTraffic, type Upstream } from '../routes/upstream.ts';
import {
  apiDown,
  badRequest,
  brokenAnswer,
  lateAnswer,
  noInstance,
  noSuchApp,
  noSuchHost,
  nothingDeployed,
  type OwnAnswer,
  renderAnswer,
} from './error-responses.ts';
import { hasBegunResponse } from './response-in-progress.ts';

export interface FrontDoorParts {
  readonly table: RouteTable;
  /** Lower case. */
  readonly apiHosts: ReadonlySet<string>;
  readonly appsDomain: string;
  readonly apiSocket: string;
  readonly timeouts: ForwardTimeouts;
  readonly now: () => Date;
}

/** Listeners for a server of node:http or node:https. */
export interface FrontDoor {
  request(request: IncomingMessage, response: ServerResponse): void;
  checkContinue(request: IncomingMessage, response: ServerResponse): void;
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void;
  clientError(error: NodeJS.ErrnoException, socket: Duplex): void;
  /** Whether a certificate may be made for this name. */
  serves(host: string): boolean;
}

/** Limits of every server the gateway opens. `headersTimeout` and the size of headers are what slow and greedy clients meet. */
export const serverOptions: ServerOptions = {
  insecureHTTPParser: false,
  requireHostHeader: false,
  maxHeaderSize: 32 * 1024,
  headersTimeout: 30_000,
  // The whole request with its body: uploads may be slow, but not endless.
  requestTimeout: 60 * 60 * 1000,
  connectionsCheckingInterval: 5000,
  // Longer than the 60 s of usual load balancers, so that they close first.
  keepAliveTimeout: 65_000,
  noDelay: true,
  optimizeEmptyRequests: true,
  // Only WebSockets are tunnelled; other offers to upgrade (h2c) are served as the plain requests they also are.
  shouldUpgradeCallback: ({ method, headers }) =>
    method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(headers),
};

function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

/** Where a host leads, and what to say when nobody is there. */
interface Destination {
  readonly choose: ChooseUpstream;
  readonly failed: (failure: ForwardFailure) => OwnAnswer;
}

export function createFrontDoor({ table, apiHosts, appsDomain, apiSocket, timeouts, now }: FrontDoorParts): FrontDoor {
  const kept = createKeptConnections(timeouts);
  const api: Upstream = {
    address: { socketPath: apiSocket },
    inFlight: { count: 0 },
    traffic: noTraffic(0),
  };
  const toApi: Destination = { choose: (tried) => (tried.length === 0 ? api : undefined), failed: () => apiDown };
  const isApiHost = (host: string): boolean => apiHosts.has(host) || host === 'localhost' || isAddress(host);

  const destinationOf = (host: string): Destination | OwnAnswer => {
    const app = table.findByHost(host);
    if (app === undefined) {
      if (isApiHost(host)) return toApi;
      return host.endsWith(`.${appsDomain}`) || host === appsDomain ? noSuchApp(host) : noSuchHost(host);
    }
    const { appName, backends } = app.route;
    if (backends.length === 0) return nothingDeployed(appName);
    const failed = (failure: ForwardFailure): OwnAnswer => {
      if (failure === 'unreachable') return noInstance(appName);
      return failure === 'late' ? lateAnswer(appName, timeouts.answerMilliseconds / 1000) : brokenAnswer(appName);
    };
    return { choose: app.choose, failed };
  };

  const open = (request: IncomingMessage, upgrade?: string): { requestId: string; plan: RequestPlan | RequestFault } => {
    const requestId = `req_${crypto.randomUUID().replaceAll('-', '')}`;
    const socket = request.socket;
    const plan = planRequest(
      {
        method: request.method ?? '',
        target: request.url ?? '',
        httpVersion: request.httpVersion,
        rawHeaders: request.rawHeaders,
        remoteAddress: (socket.remoteAddress ?? '').replace(/^::ffff:/, ''),
        localPort: socket.localPort ?? 0,
        encrypted: 'encrypted' in socket,
        requestId,
      },
      upgrade,
    );
    return { requestId, plan };
  };

  const serve = (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void => {
    const { requestId, plan } = open(request);
    const refuse = (answer: OwnAnswer): void => {
      const { status, headers, body } = renderAnswer(answer, 'host' in plan ? plan.accept : '', requestId, now());
      // After a request that cannot be trusted, or whose body nobody reads, the connection is of no more use.
      if (!('host' in plan) || plan.hasBody) response.setHeader('Connection', 'close');
      response.writeHead(status, headers).end(body);
    };
    if (!('host' in plan)) return refuse(badRequest(plan.status, plan.message));
    const destination = destinationOf(plan.host);
    if (!('choose' in destination)) return refuse(destination);
    const { choose, failed } = destination;
    forwardRequest(request, response, {
      plan,
      choose,
      kept,
      timeouts,
      expectsContinue: expectsContinue && plan.hasBody,
      fail: (failure) => refuse(failed(failure)),
    });
  };

  return {
    request: (request, response) => serve(request, response, false),
    checkContinue: (request, response) => serve(request, response, true),
    upgrade(request, socket, head) {
      socket.on('error', () => socket.destroy());
      const { requestId, plan } = open(request, request.headers.upgrade);
      const refuse = (answer: OwnAnswer): void => {
        socket.end(rawAnswer(renderAnswer(answer, 'host' in plan ? plan.accept : '', requestId, now())));
      };
      if (!('host' in plan)) return refuse(badRequest(plan.status, plan.message));
      const destination = destinationOf(plan.host);
      if (!('choose' in destination)) return refuse(destination);
      const { choose, failed } = destination;
      forwardUpgrade(request, socket, head, { plan, choose, timeouts, fail: (failure) => refuse(failed(failure)) });
    },
    clientError(error, socket) {
      if (error.code === 'ECONNRESET' || !socket.writable || hasBegunResponse(socket)) return void socket.destroy();
      const [status, message] = malformed(error.code);
      const answer = renderAnswer(badRequest(status, message), '', `req_${crypto.randomUUID().replaceAll('-', '')}`, now());
      socket.end(rawAnswer(answer), () => socket.destroy());
    },
    serves: (host) => table.findByHost(host) !== undefined || isApiHost(host),
  };
}

function malformed(code: string | undefined): [status: number, message: string] {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return [431, 'The headers of this request are larger than 32 KiB.'];
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return [408, 'The request did not arrive in time.'];
    default:
      return [400, 'This is not a request of HTTP/1.1.'];
  }
}

const reasons: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

function rawAnswer({ status, headers, body }: ReturnType<typeof renderAnswer>): string {
  const lines = Object.entries({ ...headers, Connection: 'close' }).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${reasons[status] ?? 'Error'}`, ...lines, '', body].join('\r\n');
}
