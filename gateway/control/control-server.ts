import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import { appRouteSchema, type RouteFile } from '../routes/route-file.ts';
import type { RouteTable } from '../routes/route-table.ts';
import type { Certificates } from '../tls/certificates.ts';

/** Who this gateway is: another one is started in its place when code or options differ. */
export interface GatewayIdentity {
  readonly pid: number;
  readonly version: string;
  readonly options: unknown;
}

export interface ControlServerParts {
  readonly table: RouteTable;
  readonly file: RouteFile;
  readonly certificates: Certificates;
  readonly identity: GatewayIdentity;
  /** Lets go of all ports at once, and of the process when nothing is in flight. Resolves when the ports are free. */
  readonly stop: (drainSeconds?: number) => Promise<void>;
  readonly log: Log;
}

export interface ControlServer {
  readonly server: Server;
  /** Resolves when every call that is under way has its answer. */
  answered(): Promise<void>;
}

const longestBody = 4 * 1024 * 1024;

const stopSchema = z.object({ drainSeconds: z.number().min(0).optional() });

interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * The gateway's own door, for the control plane on the same machine: JSON over HTTP on a unix socket that only its user
 * may open. `GET /watch` is answered never: it ends with the gateway, and that is what it is for.
 */
export function createControlServer(parts: ControlServerParts): ControlServer {
  let stopped = false;
  const open = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    // The next gateway has taken over: the caller is to ask that one.
    if (stopped) return void request.socket.destroy();
    if (request.url === '/stop') stopped = true;
    if (request.url === '/watch') {
      response.writeHead(200);
      response.flushHeaders();
      return;
    }
    open.add(response);
    response.once('close', () => open.delete(response));
    void answer(parts, request)
      .catch((error: unknown): Answer => {
        if (!(error instanceof AppError)) parts.log.error('a control request failed', { error, url: request.url });
        const { code, message } =
          error instanceof AppError ? error : new AppError('internal', 'The gateway failed; see its log.');
        return { status: code === 'conflict' ? 409 : code === 'not_found' ? 404 : 500, body: { error: { code, message } } };
      })
      .then(({ status, body }) => send(response, status, body));
  });
  return {
    server,
    async answered() {
      await Promise.all([...open].map((response) => new Promise((resolve) => response.once('close', resolve))));
    },
  };
}

async function answer(
  { table, file, certificates, identity, stop }: ControlServerParts,
  request: IncomingMessage,
): Promise<Answer> {
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
      if (!parsed.success || parsed.data.appId !== id)
        throw new AppError('internal', 'The gateway was sent something that is not a route.');
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
      throw new AppError('not_found', `The gateway has no ${request.method} ${request.url}.`);
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > longestBody) throw new AppError('internal', 'A route is larger than the gateway takes.');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text) });
  response.end(text);
}
