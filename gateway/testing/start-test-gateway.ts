import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { createGatewayRouter } from '#shared/routing/gateway-router.ts';
import type { Router } from '#shared/routing/router.ts';
import { type Gateway, type GatewayDependencies, startGateway } from '../gateway.ts';
import { type GatewayOptions, gatewayFiles } from '../gateway-options.ts';

/** A gateway on free ports of the loopback with a directory of its own and real upstreams. */
export interface TestGateway {
  readonly gateway: Gateway;
  readonly router: Router;
  readonly dataDir: string;
  /** Starts an app whose only release has one instance per listener, and applies its route. */
  startApp(...listeners: readonly RequestListener[]): Promise<TestApp>;
  /** Starts an API on the gateway's socket. */
  startApi(listener: RequestListener): Promise<void>;
  /** Sends a request with this Host header and reads the whole response. Rejects when it breaks off. */
  fetch(host: string, options?: RequestOptions & { readonly body?: string | Buffer }): Promise<TestResponse>;
  /** Sends the bytes as they are, and reads until the connection closes. */
  exchange(bytes: string): Promise<string>;
  connect(): Promise<Socket>;
  stop(): Promise<void>;
}

/** An app with real instances. */
export interface TestApp {
  readonly host: string;
  readonly route: AppRoute;
  readonly servers: readonly Server[];
}

/** A response that was read to its end. */
export interface TestResponse {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly trailers: IncomingMessage['trailers'];
  readonly body: string;
}

/**
 * @param dataDir of another test gateway, to start one in its place; by default a new directory, which `stop` removes
 * @param changed options other than the usual ones
 */
export async function startTestGateway(
  dependencies: Partial<GatewayDependencies> = {},
  dataDir?: string,
  changed: Partial<GatewayOptions> = {},
): Promise<TestGateway> {
  const directory = dataDir ?? (await mkdtemp(join(tmpdir(), 'paas-gateway-')));
  const log = createLog('silent', () => undefined);
  const options = {
    dataDir: directory,
    host: '127.0.0.1',
    httpPort: 0,
    httpsPort: 0,
    apiHosts: ['paas.example.com'],
    appsDomain: 'apps.localhost',
    trustedProxies: [],
    connectionsPerAddress: 1000,
    ...changed,
  };
  const gateway = await startGateway(options, { log, version: 'test', ...dependencies });
  const router = createGatewayRouter(gatewayFiles(directory).controlSocket);
  const servers: Server[] = [];

  const openSocket = async (): Promise<Socket> => {
    const socket = connect(gateway.httpPort, '127.0.0.1');
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return socket;
  };

  return {
    gateway,
    router,
    dataDir: directory,
    async startApp(...listeners) {
      const started = await Promise.all(listeners.map(startServer));
      servers.push(...started);
      const appId: AppRoute['appId'] = newUuid();
      const appName = `app-${appId.slice(0, 8)}`;
      const host = `${appName}.apps.localhost`;
      const instances = started.map((server) => ({ key: newUuid(), host: '127.0.0.1', port: portOf(server) }));
      const route: AppRoute = { appId, appName, hosts: [host], backends: [{ releaseVersion: 1, weight: 100, instances }] };
      await router.applyRoute(route);
      return { host, route, servers: started };
    },
    async startApi(listener) {
      const server = createServer(listener);
      servers.push(server);
      await listenOnSocket(server, gatewayFiles(directory).apiSocket);
    },
    fetch: (host, { body, ...options } = {}) =>
      new Promise((resolve, reject) => {
        const outgoing = request({
          host: '127.0.0.1',
          port: gateway.httpPort,
          agent: false,
          ...options,
          headers: { host, ...options.headers },
        });
        outgoing.once('error', reject);
        outgoing.once('response', (incoming) => readResponse(incoming).then(resolve, reject));
        outgoing.end(body);
      }),
    async exchange(bytes) {
      const socket = await openSocket();
      let received = '';
      socket.on('data', (chunk: Buffer) => {
        received += chunk.toString('latin1');
      });
      socket.write(bytes, 'latin1');
      await new Promise<void>((resolve) => socket.once('close', () => resolve()).once('error', () => resolve()));
      return received;
    },
    connect: openSocket,
    async stop() {
      await gateway.stop(0);
      await gateway.drained;
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
      if (dataDir === undefined) await rm(directory, { recursive: true });
    },
  };
}

/** Reads a whole response. Rejects when it breaks off. */
export async function readResponse(incoming: IncomingMessage): Promise<TestResponse> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    trailers: incoming.trailers,
    body: Buffer.concat(chunks).toString('utf8'),
  };
}

/** The port of a listening server. */
export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

/** A listener that responds with the request it received, as JSON. */
export const echo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  const { method, url, headers, rawTrailers } = request;
  response.end(JSON.stringify({ method, url, headers, rawTrailers, bytes, sha256: hash.digest('hex') }));
};

async function startServer(listener: RequestListener): Promise<Server> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}
