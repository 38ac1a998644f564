import { createServices, type Services } from '#deploy/control-plane.ts';
import { awaitMasterKey, prepareDataDirectory } from '#deploy/host/data-directory.ts';
import { createContext } from '#deploy/parts/create-context.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { callWorker } from '#deploy/parts/offer-calls.ts';
import { joinDatabase } from '#deploy/parts/open-database.ts';
import { openGitStorage } from '#deploy/parts/open-git-storage.ts';
import { serveMetrics } from '#deploy/parts/serve-metrics.ts';
import type { Main } from '#deploy/run-main.ts';
import { systemClock } from '#shared/clock.ts';
import { countBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createArgon2Hasher } from '#shared/identity/embedded/argon2-hasher.ts';
import { createEmbeddedIdentity } from '#shared/identity/embedded/embedded-identity.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import { measurePushes } from '#shared/metrics/measured-pushes.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { createRemotePlatform } from '#shared/platform/remote/remote-platform.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createSecretBox, type SecretBox } from '#shared/secret-box.ts';

/** What an entry point uses in a process without a driver of the platform. */
export interface JoinedPlatform {
  context: Context;
  services: Services;
  secrets: SecretBox;
  eventLimits: EventLimits;
  metrics: Metrics;
  /** Where this process serves them. */
  metricsPort: number;
}

const refreshMilliseconds = 10_000;

/**
 * Joins a platform whose worker is another process: the same database and repositories, and what runs the apps by calls to the worker.
 * While no worker runs, all works that needs none; what needs one is an error that says so.
 * @throws StartError for what the operator can fix
 */
export async function joinPlatform(lifetime: Lifetime, options: Parameters<Main['start']>[0]): Promise<JoinedPlatform> {
  const { settings, dataDir, log, stopping } = options;
  const clock = systemClock;
  await prepareDataDirectory(dataDir);
  const masterKey = await awaitMasterKey(dataDir, settings.secretKey, options);
  const secrets = await createSecretBox(masterKey);
  const database = await joinDatabase(lifetime, options, stopping);
  const { db } = database;

  const platform = createRemotePlatform(await callWorker(options, masterKey), clock);
  await platform.refresh();
  const refreshing = setInterval(() => void platform.refresh(), refreshMilliseconds);
  lifetime.onEnd(() => clearInterval(refreshing));

  const metrics = createPrometheusMetrics({
    pipeline: platform.capabilities.pipeline,
    countBuildStarts: () => countBuildStarts(db),
    // The worker reports it.
    readDiskSpace: async () => undefined,
    log,
  });
  const metricsPort = await serveMetrics(lifetime, metrics, options, true);
  const identity = createEmbeddedIdentity({
    db,
    secrets,
    clock,
    issuer: issuerOf(settings.baseUrl),
    hasher: createArgon2Hasher(),
  });
  const git = await openGitStorage(lifetime, db, { ...options, use: 'guest' });
  const eventLimits = createPostgresEventLimits(db);
  const context = createContext({ database, platform, git, identity, secrets, eventLimits, metrics }, options);
  const services = createServices(context);
  const pushes = measurePushes(services.pushes, metrics);
  return { context, services: { ...services, pushes }, secrets, eventLimits, metrics, metricsPort };
}
