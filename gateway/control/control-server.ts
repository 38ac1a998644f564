import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { z } from 'zod';
import { hostOfAuthority } from '#gateway/forwarding/host.ts';
import { appRouteSchema, type RouteFile } from '#gateway/routes/route-file.ts';
import type { RouteTable } from '#gateway/routes/route-table.ts';
import type { CertificateIssuer } from '#gateway/tls/certificate-issuer.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import { readAtMost } from '#shared/read-at-most.ts';

/** Identifies a running gateway. The control plane replaces it when the code or the options differ. */
export interface GatewayIdentity {
  readonly pid: number;
  /** Of the code. */
  readonly version: string;
  readonly options: unknown;
}

export interface ControlServerOptions {
  readonly table: RouteTable;
  readonly file: RouteFile;
  readonly certificates: CertificateIssuer;
  readonly identity: GatewayIdentity;
  /** Stops the gateway. Resolves when its ports are closed. */
  readonly stop: (drainSeconds?: number) => Promise<void>;
  /** Calls wait for it: until then the table lacks routes. */
  readonly loaded: Promise<void>;
  readonly log: Log;
}

export interface ControlServer {
  readonly server: Server;
  /** Resolves when no call is in progress. */
  finished(): Promise<void>;
}

const maxBodyBytes = 4 * 1024 * 1024;

const stopSchema = z.object({ drainSeconds: z.number().min(0).optional() });

interface ControlResponse {
  readonly status: number;
  readonly body: unknown;
}

/**
 * The server of the gateway's control socket, for the control plane on the same machine: JSON over HTTP on a unix socket
 * that only its user may open. `GET /watch` never ends: its connection closes with the gateway, which is how a watcher knows.
 */
export function createControlServer(options: ControlServerOptions): ControlServer {
  let stopped = false;
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    // Another gateway has taken over: the caller tries again and reaches that one.
    if (stopped) return void request.socket.destroy();
    if (request.url === '/stop') stopped = true;
    if (request.url === '/watch') {
      response.writeHead(200);
      response.flushHeaders();
      return;
    }
    open.add(response);
    response.once('close', () => open.delete(response));
    void handle(options, request)
      .catch((error: unknown): ControlResponse => {
        if (!(error instanceof AppError)) options.log.error('a control request failed', { error, url: request.url });
        const { code, message } =
          error instanceof AppError ? error : new AppError('internal', 'The gateway failed. See its log.');
        return { status: code === 'conflict' ? 409 : code === 'not_found' ? 404 : 500, body: { error: { code, message } } };
      })
      .then(({ status, body }) => send(response, status, body));
  });
  return {
    server,
    async finished() {
      await Promise.all([...open].map((response) => new Promise((resolve) => response.once('close', resolve))));
    },
  };
}

async function handle(
  { table, file, certificates, identity, stop, loaded }: ControlServerOptions,
  request: IncomingMessage,
): Promise<ControlResponse> {
  await loaded;
  const [, noun = '', id = ''] = (request.url ?? '').split('/').map(decodeURIComponent);
  switch (`${request.method} ${noun}${id === '' ? '' : '/:id'}`) {
    case 'GET identity':
      return { status: 200, body: identity };
    case 'GET routes':
      return { status: 200, body: table.list() };
    case 'GET routes/:id':
      return { status: 200, body: { route: table.find(id as AppId)?.route ?? null } };
    case 'PUT routes/:id': {
      const parsed = appRouteSchema.safeParse(JSON.parse(await readBody(request)));
      if (!parsed.success || parsed.data.appId !== id) throw new AppError('internal', 'The gateway received an invalid route.');
      table.check(parsed.data);
      table.apply(parsed.data);
      await file.write();
      return { status: 200, body: {} };
    }
    case 'DELETE routes/:id': {
      const existed = table.delete(id as AppId);
      if (existed) await file.write();
      return { status: 200, body: { existed } };
    }
    case 'GET traffic/:id':
      return { status: 200, body: table.traffic(id as AppId) };
    case 'GET past-traffic/:id':
      return { status: 200, body: table.pastTraffic(id as AppId) };
    case 'GET certificates/:id': {
      const certificate = table.findByHost(id) === undefined ? undefined : await certificates.certificateFor([id]);
      return { status: 200, body: { expiresAt: certificate?.expiresAt.toISOString() ?? null } };
    }
    case 'DELETE certificates/:id':
      // Its file is named after the host.
      if (hostOfAuthority(id) !== id) throw new AppError('not_found', `${JSON.stringify(id)} is not a host.`);
      return { status: 200, body: { existed: await certificates.deleteCertificate(id) } };
    case 'GET in-flight/:id':
      return { status: 200, body: { count: table.inFlight(id) } };
    case 'POST stop': {
      const { drainSeconds } = stopSchema.parse(JSON.parse(await readBody(request)));
      await stop(drainSeconds);
      const traffic = table
        .list()
        .map(({ appId }) => ({ appId, releases: [...table.pastTraffic(appId), ...table.traffic(appId)] }));
      return { status: 200, body: { traffic } };
    }
    default:
      throw new AppError('not_found', `The gateway does not support ${request.method} ${request.url}.`);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const bytes = await readAtMost(request, maxBodyBytes);
  if (bytes === undefined) throw new AppError('internal', 'The route is larger than 4 MiB.');
  return bytes.toString();
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}
