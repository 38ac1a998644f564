import { chmod, mkdir, rename } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Log } from '#shared/log.ts';
import { listenOnSocket, reachableSocketPath } from '#shared/net/unix-socket.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { createControlServer } from './control/control-server.ts';
import type { ForwardTimeouts } from './forwarding/forward-timeouts.ts';
import { type GatewayOptions, gatewayFiles } from './gateway-options.ts';
import { createFrontDoor, type FrontDoor, serverOptions } from './listeners/request-listeners.ts';
import { createRouteFile, type RouteFile } from './routes/route-file.ts';
import { createRouteTable, type EarlierTraffic } from './routes/route-table.ts';
import type { Certificates } from './tls/certificates.ts';
import { createLocalAuthority } from './tls/local-authority.ts';

export interface Gateway {
  readonly httpPort: number;
  readonly httpsPort: number;
  /**
   * Frees the ports at once; resolves then. `drained` resolves when the last request is over, which is after
   * `drainSeconds` (30) at the latest.
   */
  stop(drainSeconds?: number): Promise<void>;
  readonly drained: Promise<void>;
}

export interface GatewayParts {
  readonly log: Log;
  /** Of the code; see `GatewayIdentity`. */
  readonly version: string;
  /** Called right before the ports are opened: the moment to make the gateway that runs so far let go of them. */
  readonly takeOver?: () => Promise<Handover>;
  readonly certificates?: Certificates;
  readonly timeouts?: Partial<ForwardTimeouts>;
  readonly now?: () => Date;
}

/** What an earlier gateway has counted. */
export type Handover = readonly { readonly appId: AppRoute['appId']; readonly releases: readonly EarlierTraffic[] }[];

/** A port that another process holds. */
export class PortTakenError extends Error {
  readonly port: number;
  readonly setting: 'PAAS_HTTP_PORT' | 'PAAS_HTTPS_PORT';

  constructor(port: number, setting: PortTakenError['setting'], cause: unknown) {
    super(`Port ${port} is taken: set ${setting} to another.`, { cause });
    this.port = port;
    this.setting = setting;
  }
}

const usualTimeouts: ForwardTimeouts = {
  // Long polls answer within a minute or two; an app that takes longer is stuck.
  answerMilliseconds: 120_000,
  // Above the 15 minutes that a build may take without a word.
  idleMilliseconds: 20 * 60_000,
  continueMilliseconds: 1000,
};

const usualDrainSeconds = 30;

/** Connections of visitors at once; more are closed at the door. */
const mostConnections = 20_000;

/** @throws PortTakenError */
export async function startGateway(options: GatewayOptions, parts: GatewayParts): Promise<Gateway> {
  const { log } = parts;
  const now = parts.now ?? (() => new Date());
  const files = gatewayFiles(options.dataDir);
  await mkdir(files.directory, { recursive: true });
  await chmod(files.directory, 0o700);

  const table = createRouteTable();
  const file = createRouteFile(files.routes, table.list);
  const certificates = parts.certificates ?? (await createLocalAuthority(files.directory, now));
  const door = createFrontDoor({
    table,
    apiHosts: new Set(options.apiHosts),
    appsDomain: options.appsDomain,
    apiSocket: reachableSocketPath(files.apiSocket),
    timeouts: { ...usualTimeouts, ...parts.timeouts },
    now,
  });
  const http = attach(createServer(serverOptions), door);
  const https = attach(await createHttps(certificates, door, options, log), door);

  const handover = (await parts.takeOver?.()) ?? [];
  // Read only now: until a moment ago another gateway wrote this file.
  for (const route of await readRoutes(file, files.routes, log)) {
    table.check(route);
    table.apply(route);
  }
  for (const { appId, releases } of handover) table.restoreTraffic(appId, releases);

  try {
    await listen(http, options.httpPort, options.host, 'PAAS_HTTP_PORT');
    await listen(https, options.httpsPort, options.host, 'PAAS_HTTPS_PORT');
  } catch (error) {
    http.close();
    throw error;
  }

  const drained = Promise.withResolvers<void>();
  const control = createControlServer({
    table,
    file,
    certificates,
    log,
    identity: { pid: process.pid, version: parts.version, options },
    stop: (drainSeconds) => stop(drainSeconds),
  });
  let stopping: Promise<void> | undefined;
  const stop = (drainSeconds = usualDrainSeconds): Promise<void> => {
    stopping ??= (async () => {
      const doors = [http, https].map((server) => drain(server, drainSeconds));
      control.server.close();
      await file.write();
      void Promise.all(doors)
        .then(() => control.answered())
        .then(() => {
          // Whoever watches is told by the end of the process.
          control.server.closeIdleConnections();
          drained.resolve();
        });
    })();
    return stopping;
  };
  await listenOnSocket(control.server, files.controlSocket);
  const ports = { httpPort: portOf(http), httpsPort: portOf(https) };
  log.info('gateway is serving', { pid: process.pid, ...ports, routes: table.list().length });
  return { ...ports, stop, drained: drained.promise };
}

function attach<AnyServer extends Server>(server: AnyServer, door: FrontDoor): AnyServer {
  server.maxConnections = mostConnections;
  server.on('request', door.request);
  server.on('checkContinue', door.checkContinue);
  server.on('upgrade', door.upgrade);
  server.on('clientError', door.clientError);
  return server;
}

async function createHttps(certificates: Certificates, door: FrontDoor, options: GatewayOptions, log: Log): Promise<Server> {
  const fallback = await certificates.certificateFor([options.apiHosts[0] ?? 'localhost', 'localhost', '127.0.0.1', '::1']);
  return createSecureServer({
    ...serverOptions,
    key: fallback.key,
    cert: fallback.chain,
    minVersion: 'TLSv1.2',
    ALPNProtocols: ['http/1.1'],
    // Who names no host, or one that is not served, gets the platform's own certificate and then an answer by Host.
    SNICallback: (name, done) => {
      const host = name.toLowerCase();
      if (!door.serves(host) || host === options.apiHosts[0]) return done(null, fallback.context);
      certificates.certificateFor([host]).then(
        ({ context }) => done(null, context),
        (error: unknown) => {
          log.error('no certificate could be made', { host, error });
          done(null, fallback.context);
        },
      );
    },
  });
}

/** A damaged file must not keep apps down for good: the control plane applies every route again at its start. */
async function readRoutes(file: RouteFile, path: string, log: Log): Promise<readonly AppRoute[]> {
  try {
    return await file.read();
  } catch (error) {
    log.error('routes.json is damaged; it was set aside, and routes come back with the control plane', { error });
    await rename(path, `${path}.damaged`);
    return [];
  }
}

async function listen(server: Server, port: number, host: string, setting: PortTakenError['setting']): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'EADDRINUSE' ? new PortTakenError(port, setting, error) : error);
    server.once('error', failed);
    server.listen({ port, host, backlog: 4096 }, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

/** Takes no more connections from now on, lets the open requests end, and closes what is left after `seconds`. */
async function drain(server: Server, seconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  // A connection becomes idle when its request is over: it is not kept for another one then.
  server.prependListener('request', (_, response) => response.setHeader('Connection', 'close'));
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const patience = setTimeout(() => server.closeAllConnections(), seconds * 1000);
  await closed;
  clearInterval(sweep);
  clearTimeout(patience);
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
