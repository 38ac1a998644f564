import { chmod, mkdir, rename } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { millisecondsPerMinute } from '#shared/durations.ts';
import type { Log } from '#shared/log.ts';
import { listenOnOwnSocket, listenOnSocket } from '#shared/net/unix-socket.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { isLoopback, permittedNames } from '#shared/tls/permitted-names.ts';
import { createControlServer } from './control/control-server.ts';
import { trustProxies } from './forwarding/client.ts';
import type { ForwardTimeouts } from './forwarding/forward-timeouts.ts';
import { type GatewayOptions, gatewayFiles } from './gateway-options.ts';
import { followApiProcesses } from './listeners/api-processes.ts';
import { roomForConnections, shareConnections } from './listeners/connection-shares.ts';
import { createDestinations } from './listeners/destinations.ts';
import { createHttpServer, createHttpsServer, drain, listen } from './listeners/http-servers.ts';
import { createRequestListeners } from './listeners/request-listeners.ts';
import { limitSources } from './listeners/source-connections.ts';
import { createRouteFile, type RouteFile } from './routes/route-file.ts';
import { createRouteTable, type EarlierTraffic } from './routes/route-table.ts';
import type { CertificateIssuer } from './tls/certificate-issuer.ts';
import { createLocalAuthority } from './tls/local-authority.ts';

/** A gateway that serves. */
export interface Gateway {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Closes the ports and resolves. Requests in flight have `drainSeconds` (30 by default) to end; see `drained`. */
  stop(drainSeconds?: number): Promise<void>;
  /** Resolves after `stop` when the last request has ended or its time is over. */
  readonly drained: Promise<void>;
}

export interface GatewayDependencies {
  readonly log: Log;
  /** Of the code; see `GatewayIdentity`. */
  readonly version: string;
  /** Called right before the ports are opened, to make a running gateway close them. */
  readonly takeOver?: () => Promise<Handover>;
  /** A local certificate authority by default. */
  readonly certificates?: CertificateIssuer;
  readonly timeouts?: Partial<ForwardTimeouts>;
  /** Connections of clients at once; by default as many as the process may have. */
  readonly mostConnections?: number;
  readonly now?: () => Date;
}

/** The traffic that an earlier gateway has counted. */
export type Handover = readonly { readonly appId: AppRoute['appId']; readonly releases: readonly EarlierTraffic[] }[];

const defaultTimeouts: ForwardTimeouts = {
  handshakeMilliseconds: 30_000,
  // Long polls answer within a minute or two; an app that takes longer hangs.
  responseMilliseconds: 120_000,
  // More than the 15 minutes that a build may run without output.
  idleMilliseconds: 20 * millisecondsPerMinute,
  halfClosedMilliseconds: 10_000,
  continueMilliseconds: 1000,
};

const defaultDrainSeconds = 30;

/**
 * Starts a gateway: opens its ports and its control socket, and serves the routes of the last one.
 * @throws PortTakenError when a port is in use
 */
export async function startGateway(options: GatewayOptions, dependencies: GatewayDependencies): Promise<Gateway> {
  const { log } = dependencies;
  const now = dependencies.now ?? (() => new Date());
  const timeouts = { ...defaultTimeouts, ...dependencies.timeouts };
  const files = gatewayFiles(options.dataDir, options.instance);
  await mkdir(files.directory, { recursive: true });
  await chmod(files.directory, 0o700);

  const table = createRouteTable();
  const file = createRouteFile(files.routes, table.list);
  const certificates =
    dependencies.certificates ??
    (await createLocalAuthority({
      directory: files.directory,
      permitted: permittedNames([options.appsDomain, ...platformHosts(options)]),
      now,
      log,
    }));
  const api = followApiProcesses(files);
  const destinations = createDestinations({
    table,
    apiHosts: new Set(options.apiHosts),
    appsDomain: options.appsDomain,
    api: api.upstreams,
    timeouts,
  });
  const isTrusted = trustProxies(options.trustedProxies);
  const sources = limitSources({
    most: options.connectionsPerAddress,
    mostOfAll: dependencies.mostConnections ?? roomForConnections(),
    // Proxies have the connections of many clients, and limit those themselves. Clients on the loopback are on the machine.
    isExempt: (address) => isLoopback(address) || isTrusted(address),
    now,
    log,
  });
  const listeners = createRequestListeners({
    destinations,
    shares: shareConnections(() => sources.free),
    timeouts,
    isTrusted,
    platformDomains: [options.appsDomain, ...options.apiHosts],
    now,
  });
  const http = createHttpServer(listeners);
  const https = await createHttpsServer(listeners, {
    certificates,
    platformHosts: platformHosts(options),
    handshakeMilliseconds: timeouts.handshakeMilliseconds,
    hasApp: (host) => table.findByHost(host) !== undefined,
    log,
  });
  sources.limit(http, listeners.tooManyConnections);
  sources.limit(https);

  const handover = (await dependencies.takeOver?.()) ?? [];
  const loadRoutes = async (): Promise<void> => {
    for (const route of await readRoutes(file, files.routes, log)) {
      table.check(route);
      table.apply(route);
    }
  };
  // Not earlier: until now another gateway may have written this file.
  await loadRoutes();
  for (const { appId, releases } of handover) table.restoreTraffic(appId, releases);

  try {
    const { host } = options;
    const shared = options.instance !== undefined;
    await listen(http, { host, port: options.httpPort, shared }, 'PAAS_HTTP_PORT');
    await listen(https, { host, port: options.httpsPort, shared }, 'PAAS_HTTPS_PORT');
  } catch (error) {
    http.close();
    api.end();
    throw error;
  }

  const drained = Promise.withResolvers<void>();
  const loaded = Promise.withResolvers<void>();
  const control = createControlServer({
    table,
    file,
    certificates,
    log,
    loaded: loaded.promise,
    identity: { pid: process.pid, version: dependencies.version, options },
    stop: (drainSeconds) => stop(drainSeconds),
  });
  let stopping: Promise<void> | undefined;
  const stop = (drainSeconds = defaultDrainSeconds): Promise<void> => {
    stopping ??= (async () => {
      const drains = [http, https].map((server) => drain(server, drainSeconds));
      control.server.close();
      api.end();
      // It must end all the same: the control plane applies the routes again at its next start.
      await file.write().catch((error: unknown) => log.error('the routes could not be saved', { error }));
      void Promise.all(drains)
        .then(() => control.finished())
        .then(() => {
          // The connections of watchers end with the process.
          control.server.closeIdleConnections();
          drained.resolve();
        });
    })();
    return stopping;
  };
  if (options.instance === undefined) {
    await listenOnSocket(control.server, files.controlSocket);
  } else {
    await listenOnOwnSocket(control.server, files.controlSocket);
    // Other gateways of this directory may have been given routes while the control plane did not see this one.
    await loadRoutes();
  }
  loaded.resolve();
  const ports = { httpPort: portOf(http), httpsPort: portOf(https) };
  log.info('gateway is serving', { pid: process.pid, ...ports, routes: table.list().length });
  return { ...ports, stop, drained: drained.promise };
}

/** What the platform's certificate is for. */
function platformHosts({ apiHosts }: GatewayOptions): [string, ...string[]] {
  const [first = 'localhost', ...others] = apiHosts.map((host) => host.replace(/^\[(.*)\]$/, '$1'));
  return [first, ...new Set([...others, 'localhost', '127.0.0.1', '::1'].filter((host) => host !== first))];
}

/** A damaged file must not keep apps offline: the control plane applies every route again at its next start. */
async function readRoutes(file: RouteFile, path: string, log: Log): Promise<readonly AppRoute[]> {
  try {
    return await file.read();
  } catch (error) {
    log.error('routes.json is damaged and was renamed; the control plane applies the routes again at its start', { error });
    await rename(path, `${path}.damaged`);
    return [];
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}
