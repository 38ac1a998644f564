/**
 * The main of the API at the edge on Deno, Node and Bun (docs/edge.md). It listens on PAAS_EDGE_PORT, without TLS: a proxy in front of
 * it has that.
 */

import process from 'node:process';
import { createClientAddress } from '#deploy/edge/client-address.ts';
import { createEdgeApi, createEdgeParts } from '#deploy/edge/create-edge-api.ts';
import { parseEdgeSettings } from '#deploy/edge/edge-settings.ts';
import { createApiServer } from '#deploy/parts/api-server.ts';
import { systemClock } from '#shared/clock.ts';
import { createWasmArgon2Hasher } from '#shared/identity/embedded/wasm-argon2-hasher.ts';
import { limits } from '#shared/limits.ts';
import { SettingsError } from '#shared/settings/settings.ts';

try {
  const settings = parseEdgeSettings(process.env);
  const addressOf = createClientAddress(settings.trustedProxies);
  const peers = new WeakMap<Request, string>();
  const parts = await createEdgeParts(settings);
  const api = createEdgeApi(parts, {
    settings,
    clientAddress: (request) => addressOf(request, peers.get(request) ?? ''),
    hasher: createWasmArgon2Hasher(),
    connections: 20,
  });
  const server = createApiServer({
    fetch(request, { incoming }) {
      peers.set(request, incoming.socket.remoteAddress ?? '');
      return api.fetch(request);
    },
    clock: systemClock,
    log: parts.log,
    bodySeconds: limits.http.bodySeconds,
  });
  const port = settings.edgePort ?? settings.httpPort;
  server.listen(port, settings.host, () => {
    console.log(`paas api is ready at ${settings.host}:${port}`);
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
