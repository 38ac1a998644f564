/**
 * The main of the API at the edge on workerd, also on Cloudflare (docs/edge.md). A worker must not use a connection of another request,
 * so each request has its own connections to the database; with Hyperdrive these are to a pool nearby.
 */
import { createWorkerClientAddress } from '#deploy/edge/client-address.ts';
import { createEdgeApi, createEdgeParts, type EdgeParts } from '#deploy/edge/create-edge-api.ts';
import { type EdgeSettings, parseEdgeSettings } from '#deploy/edge/edge-settings.ts';
import { AppError } from '#shared/errors.ts';

interface Bindings {
  readonly [setting: string]: unknown;
  /** Cloudflare's pool of connections; without it PAAS_DATABASE_URL is used. */
  readonly HYPERDRIVE?: { readonly connectionString: string };
}

interface ExecutionContext {
  waitUntil(work: Promise<unknown>): void;
}

const connections = 3;

interface Prepared {
  settings: EdgeSettings;
  parts: EdgeParts;
  clientAddress(request: Request): string;
}

let prepared: Promise<Prepared> | undefined;

async function prepare(env: Bindings): Promise<Prepared> {
  const url = env.HYPERDRIVE?.connectionString;
  const settings = parseEdgeSettings(url === undefined ? env : { ...env, PAAS_DATABASE_URL: url });
  const clientAddress = createWorkerClientAddress(settings.trustedProxies);
  return { settings, clientAddress, parts: await createEdgeParts(settings) };
}

/** Calls `end` once the client has got the whole response, or has gone. */
function whenSent(response: Response, end: () => void): Response {
  if (response.body === null) {
    end();
    return response;
  }
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  response.body.pipeTo(writable).then(end, end);
  return new Response(readable, response);
}

const worker = {
  async fetch(request: Request, env: Bindings, context: ExecutionContext): Promise<Response> {
    prepared ??= prepare(env);
    const { settings, parts, clientAddress } = await prepared.catch((error: unknown) => {
      prepared = undefined;
      throw error instanceof Error ? error : new AppError('internal', String(error));
    });
    const api = createEdgeApi(parts, { settings, clientAddress, hasher: undefined, connections });
    const response = await api.fetch(request);
    const sent = Promise.withResolvers<void>();
    context.waitUntil(sent.promise.then(() => api.close()));
    return whenSent(response, sent.resolve);
  },
};

export { worker as default };
