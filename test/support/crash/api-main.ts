/**
 * One of several processes of the REST API on one database, with real limits. Arguments: URL of the database, an empty
 * directory. Sends `{ port }` over IPC, and ends with the process that started it.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createApi } from '#api/create-api.ts';
import { createServices } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createLog } from '#shared/log.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createCoreContext } from '#test/support/core/core-context.ts';

const [, , url = '', directory = ''] = process.argv;
const log = createLog('error', (line) => process.stderr.write(`${line}\n`));
const { db } = connectPostgres(url, () => undefined, 10);
const platform = createFakePlatform({ clock: systemClock });
const git = createGitStorage({ db, directory, log, threads: 1 });
const context = await createCoreContext({ db, log, clock: systemClock, platform, git });
const api = createApi({
  services: createServices(context),
  identity: context.identity,
  issuer: 'http://localhost:8080/v1/auth',
  checkReady: async () => undefined,
  acceptsBuilds: async () => true,
  rateLimits: createPostgresRateLimits(db),
  eventLimits: createPostgresEventLimits(db),
  idempotencyKeys: createPostgresIdempotencyKeys(context),
  allowedOrigins: [],
  clock: systemClock,
  log,
  metrics: createPrometheusMetrics({ pipeline: 'memory', countBuildStarts: async () => [], log }),
  clientAddress: () => '127.0.0.1',
});
const server = createServer(getRequestListener(api.fetch));
server.listen(0, '127.0.0.1');
await once(server, 'listening');
process.on('disconnect', () => process.exit(0));
process.channel?.ref();
process.send?.({ port: (server.address() as AddressInfo).port });
