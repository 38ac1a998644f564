/**
 * The main of the API at the edge on Deno, Node and Bun (docs/edge.md). It listens on PAAS_HTTP_PORT, without TLS: a proxy in front of
 * it has that.
 */

import { createServer } from 'node:http';
import process from 'node:process';
import { getRequestListener } from '@hono/node-server';
import { createClientAddress } from '#deploy/edge/client-address.ts';
import { createEdgeApi, createEdgeParts } from '#deploy/edge/create-edge-api.ts';
import { parseEdgeSettings } from '#deploy/edge/edge-settings.ts';
import { createWasmArgon2Hasher } from '#shared/identity/embedded/wasm-argon2-hasher.ts';
import { SettingsError } from '#shared/settings/settings.ts';

try {
  const settings = parseEdgeSettings(process.env);
  const addressOf = createClientAddress(settings.trustedProxies);
  const peers = new WeakMap<Request, string>();
  const api = createEdgeApi(await createEdgeParts(settings), {
    settings,
    clientAddress: (request) => addressOf(request, peers.get(request) ?? ''),
    hasher: createWasmArgon2Hasher(),
    connections: 20,
  });
  const listener = getRequestListener((request, { incoming }) => {
    peers.set(request, incoming.socket.remoteAddress ?? '');
    return api.fetch(request);
  });
  const server = createServer((request, response) => void listener(request, response));
  server.listen(settings.httpPort, settings.host, () => {
    console.log(`paas api is ready at ${settings.host}:${settings.httpPort}`);
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      server.close(() => void api.close().finally(() => process.exit(0)));
      server.closeAllConnections();
    });
  }
} catch (error) {
  console.error(` !     ${error instanceof SettingsError ? error.message : String(error)}`);
  process.exit(1);
}
