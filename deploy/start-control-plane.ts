import { createJobHandlers, createServices, resumeApps, type Services } from '#deploy/control-plane.ts';
import type { PlatformDriver } from '#deploy/drivers/platform-driver.ts';
import { createContext } from '#deploy/parts/create-context.ts';
import { startHousekeeping } from '#deploy/parts/housekeeping.ts';
import { listHousekeepingTasks } from '#deploy/parts/housekeeping-tasks.ts';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { offerCalls } from '#deploy/parts/offer-calls.ts';
import type { OpenDatabase } from '#deploy/parts/open-database.ts';
import { openGitStorage } from '#deploy/parts/open-git-storage.ts';
import { serveMetrics } from '#deploy/parts/serve-metrics.ts';
import { startDiskWatch } from '#deploy/parts/start-disk-watch.ts';
import { startDriftRepair } from '#deploy/parts/start-drift-repair.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { startSampling } from '#deploy/parts/start-sampling.ts';
import { startWorker } from '#deploy/parts/start-worker.ts';
import { systemClock } from '#shared/clock.ts';
import { countBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import type { Context } from '#shared/core/context.ts';
import { offerGitStorage } from '#shared/git/remote-git-storage.ts';
import type { IdempotencyKeys } from '#shared/idempotency/idempotency.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createArgon2Hasher } from '#shared/identity/embedded/argon2-hasher.ts';
import { createEmbeddedIdentity } from '#shared/identity/embedded/embedded-identity.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import { measureBuilds } from '#shared/metrics/measured-builds.ts';
import { measurePushes } from '#shared/metrics/measured-pushes.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { offerPlatform } from '#shared/platform/remote/remote-platform.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';
import type { Router } from '#shared/routing/router.ts';
import { createSecretBox } from '#shared/secret-box.ts';
import { offerOutside } from '#shared/sources/remote-sources.ts';

/** What a control plane is built on. */
export interface ControlPlaneParts {
  database: OpenDatabase;
  masterKey: Uint8Array<ArrayBuffer>;
  /** Claimed by this process. */
  driver: PlatformDriver;
  /** Of gateways that run; undefined where the driver has none. */
  router: Router | undefined;
  /** Whether other processes receive pushes in the same data directory. */
  sharesDirectory: boolean;
}

/** What the entry points of the same process use. */
export interface ControlPlane {
  context: Context;
  services: Services;
  rateLimits: RateLimits;
  eventLimits: EventLimits;
  idempotencyKeys: IdempotencyKeys;
  metrics: Metrics;
  /** Apps that ran before and are brought back. */
  resumedApps: number;
}

/**
 * Starts all that one process of a platform does: it drives what runs the apps, works off the jobs, takes samples, sweeps, and answers
 * the processes that have no driver.
 * @throws StartError for what the operator can fix
 */
export async function startControlPlane(
  lifetime: Lifetime,
  parts: ControlPlaneParts,
  options: StartOptions,
): Promise<ControlPlane> {
  const { settings, log } = options;
  const { database, masterKey, router, sharesDirectory } = parts;
  const { db } = database;
  const clock = systemClock;
  const secrets = await createSecretBox(masterKey);
  const driver = await parts.driver.create(lifetime, { ...options, router, secretBox: secrets, clock });
  const { pipeline } = driver.capabilities;
  const metrics = createPrometheusMetrics({ pipeline, countBuildStarts: () => countBuildStarts(db), ...driver.diskSpace, log });
  await serveMetrics(lifetime, metrics, options);

  const platform = { ...driver, builds: measureBuilds(driver.builds, metrics) };
  const hasher = createArgon2Hasher();
  const identity = createEmbeddedIdentity({ db, secrets, clock, issuer: issuerOf(settings.baseUrl), hasher });
  const git = await openGitStorage(lifetime, db, { ...options, use: sharesDirectory ? 'shared' : 'alone' });
  const eventLimits = createPostgresEventLimits(db);
  const context = createContext({ database, platform, git, identity, secrets, eventLimits, metrics }, options);
  const services = createServices(context);
  const ports = {
    ...offerPlatform(platform),
    ...offerGitStorage(git),
    ...offerOutside(context),
    passwords: { methods: { calls: ['hash', 'verify'] }, driver: hasher },
  };
  await offerCalls(lifetime, { masterKey, ports }, options);
  const resumedApps = await resumeApps(context);
  await startWorker(lifetime, { database, handlers: createJobHandlers(context), metrics, log, soleWorker: true });

  const rateLimits = createPostgresRateLimits(db);
  const idempotencyKeys = createPostgresIdempotencyKeys({ db, secrets, clock });
  startDiskWatch(lifetime, context);
  startSampling(lifetime, context);
  const driftTasks = startDriftRepair(lifetime, context);
  const tasks = listHousekeepingTasks({ context, identity, rateLimits, eventLimits, idempotencyKeys });
  startHousekeeping(lifetime, [...tasks, ...driftTasks], log);
  return {
    context,
    services: { ...services, pushes: measurePushes(services.pushes, metrics) },
    rateLimits,
    eventLimits,
    idempotencyKeys,
    metrics,
    resumedApps,
  };
}
