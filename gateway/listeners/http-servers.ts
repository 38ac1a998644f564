import { createServer, type IncomingMessage, type Server, type ServerOptions } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { hostOfAuthority } from '#gateway/forwarding/host.ts';
import type { CertificateIssuer } from '#gateway/tls/certificate-issuer.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import type { Log } from '#shared/log.ts';
import type { RequestListeners } from './request-listeners.ts';

/** A port that another process uses. */
export class PortTakenError extends Error {
  readonly port: number;
  /** The setting that changes the port. */
  readonly setting: 'PAAS_HTTP_PORT' | 'PAAS_HTTPS_PORT';

  constructor(port: number, setting: PortTakenError['setting'], cause: unknown) {
    super(`Port ${port} is taken: set ${setting} to another.`, { cause });
    this.port = port;
    this.setting = setting;
  }
}

/** The same limits for both servers; `headersTimeout` and `maxHeaderSize` are against slow and greedy clients. */
const serverOptions: ServerOptions = {
  insecureHTTPParser: false,
  requireHostHeader: false,
  maxHeaderSize: 32 * 1024,
  headersTimeout: 30_000,
  // The whole request with its body: uploads may be slow, but not endless.
  requestTimeout: millisecondsPerHour,
  connectionsCheckingInterval: 5000,
  // Longer than the 60 s of common load balancers, so that they close the connection first.
  keepAliveTimeout: 65_000,
  noDelay: true,
  optimizeEmptyRequests: true,
  // Only WebSockets are upgraded. Other requests to upgrade (h2c) are served as the plain requests they also are.
  shouldUpgradeCallback: ({ method, headers }) =>
    method === 'GET' && headers.upgrade?.toLowerCase() === 'websocket' && !hasBody(headers),
};

function hasBody(headers: IncomingMessage['headers']): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0';
}

/** Creates the server of the HTTP port; `listen` opens it. */
export function createHttpServer(listeners: RequestListeners): Server {
  return attach(createServer(serverOptions), listeners);
}

export interface HttpsOptions {
  readonly certificates: CertificateIssuer;
  /** The platform's own names and addresses, which the default certificate is for. */
  readonly platformHosts: readonly [string, ...string[]];
  /** Whether the host belongs to an app, so that a certificate may be issued for it. */
  readonly hasApp: (host: string) => boolean;
  /** Until a handshake is complete. */
  readonly handshakeMilliseconds: number;
  readonly log: Log;
}

const renewalCheckMilliseconds = millisecondsPerHour;

/** Creates the server of the HTTPS port, which chooses the certificate by the host that the client names (SNI). */
export async function createHttpsServer(listeners: RequestListeners, options: HttpsOptions): Promise<Server> {
  const { certificates, platformHosts, handshakeMilliseconds, hasApp, log } = options;
  let platform = await certificates.certificateFor(platformHosts);
  const server = createSecureServer({
    ...serverOptions,
    key: platform.key,
    cert: platform.chain,
    minVersion: 'TLSv1.2',
    handshakeTimeout: handshakeMilliseconds,
    ALPNProtocols: ['http/1.1'],
    // A client that names no host of an app gets the platform's certificate. The Host header decides the response.
    SNICallback: (name, done) => {
      const host = hostOfAuthority(name);
      if (host === undefined || platformHosts.includes(host) || !hasApp(host)) return done(null, platform.context);
      certificates.certificateFor([host]).then(
        ({ context }) => done(null, context),
        (error: unknown) => {
          log.error('no certificate could be issued', { host, error });
          done(null, platform.context);
        },
      );
    },
  });
  // Without a complete handshake no response can be sent: node:https would wait for it forever.
  server.prependListener('tlsClientError', (_, socket) => socket.destroy());
  const renew = async (): Promise<void> => {
    const current = await certificates.certificateFor(platformHosts);
    if (current === platform) return;
    platform = current;
    server.setSecureContext({ key: current.key, cert: current.chain, minVersion: 'TLSv1.2' });
  };
  const renewal = setInterval(() => {
    renew().catch((error: unknown) => log.error("the platform's certificate could not be renewed", { error }));
  }, renewalCheckMilliseconds);
  renewal.unref();
  server.once('close', () => clearInterval(renewal));
  return attach(server, listeners);
}

function attach<AnyServer extends Server>(server: AnyServer, listeners: RequestListeners): AnyServer {
  server.on('request', listeners.request);
  server.on('checkContinue', listeners.checkContinue);
  server.on('checkExpectation', listeners.checkExpectation);
  server.on('connect', listeners.connect);
  server.on('upgrade', listeners.upgrade);
  server.on('clientError', listeners.clientError);
  return server;
}

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
  /** Whether other processes of this user may listen there, too: the kernel spreads connections over them. */
  readonly shared: boolean;
}

/**
 * Opens the server's port.
 * @throws PortTakenError naming `setting`
 */
export async function listen(server: Server, address: ListenAddress, setting: PortTakenError['setting']): Promise<void> {
  const { host, port, shared } = address;
  await new Promise<void>((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException): void =>
      reject(error.code === 'EADDRINUSE' ? new PortTakenError(port, setting, error) : error);
    server.once('error', failed);
    server.listen({ port, host, backlog: 4096, reusePort: shared }, () => {
      server.off('error', failed);
      resolve();
    });
  });
}

/** Closes the port at once, lets requests in flight end, and closes the remaining connections after `seconds`. */
export async function drain(server: Server, seconds: number): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  // A connection is not kept for another request when its current one has ended.
  server.prependListener('request', (_, response) => response.setHeader('Connection', 'close'));
  const sweep = setInterval(() => server.closeIdleConnections(), 50);
  const deadline = setTimeout(() => server.closeAllConnections(), seconds * 1000);
  await closed;
  clearInterval(sweep);
  clearTimeout(deadline);
}
