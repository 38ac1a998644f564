/** The main of a process of the API alone (docs/processes.md). Any number of them serve the gateways of one data directory. */
import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startWithLifetime } from '#deploy/parts/lifetime.ts';
import { serveApi } from '#deploy/parts/serve-api.ts';
import { joinPlatform } from '#deploy/processes/join-platform.ts';
import { runMain } from '#deploy/run-main.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { systemClock } from '#shared/clock.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { listenOnOwnSocket, removeDeadSockets } from '#shared/net/unix-socket.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';

await runMain(process.env, {
  start: (options) =>
    startWithLifetime(async (lifetime) => {
      const { directory } = gatewayFiles(options.dataDir);
      const { secrets, metricsPort, ...joined } = await joinPlatform(lifetime, options);
      const { db } = joined.context;
      const rateLimits = createPostgresRateLimits(db);
      const idempotencyKeys = createPostgresIdempotencyKeys({ db, secrets, clock: systemClock });
      await mkdir(directory, { recursive: true, mode: 0o700 });
      await removeDeadSockets(directory, /^api-.+\.sock$/);
      const socketPath = join(directory, `api-${randomUUID().slice(0, 8)}.sock`);
      const { allowedOrigins } = options.settings;
      await serveApi(lifetime, { ...joined, rateLimits, idempotencyKeys, allowedOrigins }, (server) =>
        listenOnOwnSocket(server, socketPath),
      );
      return {
        describe: (seconds) => [`paas api is ready (${seconds.toFixed(1)} s): ${socketPath}, metrics at port ${metricsPort}`],
        stop: (ending) => lifetime.end(ending),
      };
    }),
  stopping: { stop: '\nStopping the API…', restart: '\nStopping the API…' },
});
