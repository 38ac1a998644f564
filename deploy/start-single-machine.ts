import type { StartFacts } from '#deploy/banner.ts';
import { createJobHandlers, createServices, resumeApps } from '#deploy/control-plane.ts';
import { loadMasterKey, lockDataDirectory, prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { choosePlatform } from '#deploy/parts/choose-platform.ts';
import { createContext } from '#deploy/parts/create-context.ts';
import { startHousekeeping } from '#deploy/parts/housekeeping.ts';
import { listHousekeepingTasks } from '#deploy/parts/housekeeping-tasks.ts';
import { type Ending, type Lifetime, startWithLifetime } from '#deploy/parts/lifetime.ts';
import { openDatabase } from '#deploy/parts/open-database.ts';
import { openGitStorage } from '#deploy/parts/open-git-storage.ts';
import { serveApi } from '#deploy/parts/serve-api.ts';
import { serveMetrics } from '#deploy/parts/serve-metrics.ts';
import { serveSsh } from '#deploy/parts/serve-ssh.ts';
import { startDiskWatch } from '#deploy/parts/start-disk-watch.ts';
import { startGateway } from '#deploy/parts/start-gateway.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { startSampling } from '#deploy/parts/start-sampling.ts';
import { startWorker } from '#deploy/parts/start-worker.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { systemClock } from '#shared/clock.ts';
import { countBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createEmbeddedIdentity } from '#shared/identity/embedded/embedded-identity.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import { measurePushes } from '#shared/metrics/measured-pushes.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createSecretBox } from '#shared/secret-box.ts';

export interface SingleMachine {
  facts: StartFacts;
  stop(ending: Ending): Promise<void>;
}

/**
 * Starts the whole platform on this machine, each part after those it needs: data directory, database, gateway, apps, worker,
 * API, SSH. What was started is stopped again when a later part fails.
 * @throws StartError, SettingsError or PostgresError for what the operator can fix
 */
export function startSingleMachine(options: StartOptions): Promise<SingleMachine> {
  return startWithLifetime((lifetime) => startParts(lifetime, options));
}

async function startParts(lifetime: Lifetime, options: StartOptions): Promise<SingleMachine> {
  const { settings, dataDir, hostEnv, log } = options;
  const clock = systemClock;
  const createPlatform = choosePlatform(settings);
  await prepareDataDirectory(dataDir);
  const lock = await lockDataDirectory(dataDir);
  lifetime.onEnd(() => lock.release());
  const database = await openDatabase(lifetime, options);
  const { db } = database;
  const secrets = await createSecretBox(await loadMasterKey(dataDir, settings.secretKey));
  const router = await startGateway(lifetime, options);
  const { appNetwork, shareRegistryCredentials, diskReserveBytes } = settings;
  const platform = await createPlatform(lifetime, {
    dataDir,
    router,
    secretBox: secrets,
    clock,
    log,
    appNetwork,
    shareRegistryCredentials,
    hostEnv,
    diskReserveBytes,
  });
  const { pipeline, sandbox, sandboxProblem } = platform.capabilities;
  const metrics = createPrometheusMetrics({ pipeline, countBuildStarts: () => countBuildStarts(db), ...platform.diskSpace, log });
  await serveMetrics(lifetime, metrics, options);

  const identity = createEmbeddedIdentity({ db, secrets, clock, issuer: issuerOf(settings.baseUrl) });
  const git = await openGitStorage(lifetime, db, options);
  const eventLimits = createPostgresEventLimits(db);
  const context = createContext({ database, platform, git, identity, secrets, eventLimits, metrics }, options);
  const services = createServices(context);
  const measured = { ...services, pushes: measurePushes(services.pushes, metrics) };
  const resumedApps = await resumeApps(context);
  await startWorker(lifetime, { database, handlers: createJobHandlers(context), metrics, log, soleWorker: true });

  const rateLimits = createPostgresRateLimits(db);
  const idempotencyKeys = createPostgresIdempotencyKeys({ db, secrets, clock });
  const { apiSocket: socketPath } = gatewayFiles(dataDir);
  const { allowedOrigins } = settings;
  await serveApi(lifetime, {
    context,
    services: measured,
    rateLimits,
    eventLimits,
    idempotencyKeys,
    allowedOrigins,
    metrics,
    socketPath,
  });
  await serveSsh(lifetime, { context, services: measured }, options);
  startDiskWatch(lifetime, context);
  startSampling(lifetime, context);
  startHousekeeping(lifetime, listHousekeepingTasks({ context, identity, rateLimits, eventLimits, idempotencyKeys }), log);

  return {
    facts: { sandboxProblem: sandbox ? undefined : sandboxProblem, resumedApps },
    stop: (ending) => lifetime.end(ending),
  };
}
