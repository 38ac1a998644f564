import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { sql } from 'kysely';
import { type ApiOptions, createApi } from '#api/create-api.ts';
import { createGitOverHttp } from '#api/git/git-over-http.ts';
import type { StartFacts } from '#deploy/banner.ts';
import type { Services } from '#deploy/control-plane.ts';
import { createJobHandlers, createServices, resumeApps } from '#deploy/control-plane.ts';
import { loadMasterKey, lockDataDirectory, prepareDataDirectory } from '#deploy/data-directory.ts';
import { ensureGateway, gatewayOptions } from '#deploy/gateway-process.ts';
import { startHousekeeping } from '#deploy/housekeeping.ts';
import { serveMetrics } from '#deploy/metrics-server.ts';
import { openPackStorage } from '#deploy/pack-storage.ts';
import { findPortOwner } from '#deploy/port-owner.ts';
import { StartError } from '#deploy/start-error.ts';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { systemClock } from '#shared/clock.ts';
import { createBindings } from '#shared/core/addons/bindings.ts';
import { createAddresses } from '#shared/core/addresses.ts';
import { countBuildStarts, foldBuildStarts } from '#shared/core/builds/build-starts-store.ts';
import type { Context } from '#shared/core/context.ts';
import { keepSampling, sweepSamples } from '#shared/core/telemetry/app-sampling.ts';
import { sweepDeliveries } from '#shared/core/webhooks/webhooks-service.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import { createNodeResolver } from '#shared/dns/node-resolver.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { createPostgresIdempotencyKeys } from '#shared/idempotency/postgres-idempotency.ts';
import { createEmbeddedIdentity, sweepRefreshTokens } from '#shared/identity/embedded/embedded-identity.ts';
import { issuerOf } from '#shared/identity/issuer.ts';
import { graphileJobs, migrateJobs, startGraphileWorker } from '#shared/jobs/graphile/graphile-jobs.ts';
import { limits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';
import { measureBuilds } from '#shared/metrics/measured-builds.ts';
import { measureJobs } from '#shared/metrics/measured-jobs.ts';
import { measureMaintenance } from '#shared/metrics/measured-maintenance.ts';
import { measurePushes } from '#shared/metrics/measured-pushes.ts';
import { createPrometheusMetrics } from '#shared/metrics/prometheus-metrics.ts';
import { listenOnSocket } from '#shared/net/unix-socket.ts';
import { createLocalPlatform } from '#shared/platform/local/local-platform.ts';
import { type KeptPostgres, keepPostgres } from '#shared/platform/local/postgres/keep-postgres.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createSecretBox } from '#shared/secret-box.ts';
import type { Settings } from '#shared/settings.ts';
import { createOutsideSourceHosts } from '#shared/sources/outside-source-hosts.ts';
import { createPostgresWakeups } from '#shared/wakeups/postgres-wakeups.ts';
import { loadHostKeys } from '#sshd/host-keys.ts';
import { createSshServer } from '#sshd/server.ts';

export interface SingleMachineOptions {
  settings: Settings;
  /** Absolute. */
  dataDir: string;
  /** The operator's environment, for builds: where tools are and how registries are reached. */
  hostEnv: Readonly<Record<string, string | undefined>>;
  log: Log;
  /** What is being done, for whoever waits for the start. */
  tell(line: string): void;
}

export interface SingleMachine {
  facts: StartFacts;
  /** `stop` leaves nothing running; `restart` leaves apps, gateway and database to the next start. */
  stop(how: 'stop' | 'restart'): Promise<void>;
}

const databaseConnections = 20;
/** Rollouts wait more than they work; builds are bounded by the machine, each in its own control group. */
const jobsAtOnce = 8;
const sshGraceMilliseconds = 1000;
/** Longer than any push may take. */
const abandonedPushSeconds = 2 * limits.push.seconds;

/**
 * Brings everything up in the order of need: directory, database, gateway, apps, doors, work.
 * What was started is stopped again when a later step fails.
 * @throws StartError, SettingsError or PostgresError for what the operator can mend
 */
export async function startSingleMachine(options: SingleMachineOptions): Promise<SingleMachine> {
  const lifetime: Lifetime = { started: new AsyncDisposableStack(), how: 'stop' };
  try {
    return await bringUp(options, lifetime);
  } catch (error) {
    await lifetime.started.disposeAsync();
    throw error;
  }
}

interface Lifetime {
  started: AsyncDisposableStack;
  /** With `restart` what outlives the control plane is left to the next start. */
  how: 'stop' | 'restart';
}

async function bringUp(
  { settings, dataDir, hostEnv, log, tell }: SingleMachineOptions,
  lifetime: Lifetime,
): Promise<SingleMachine> {
  const { started } = lifetime;
  checkSettings(settings);
  await prepareDataDirectory(dataDir);
  const lock = await lockDataDirectory(dataDir);
  started.defer(() => lock.release());
  const server = settings.databaseUrl === undefined ? await startEmbeddedPostgres(dataDir, log, tell) : undefined;
  // Live apps may serve beside a database that was found: a start that fails must not take them down.
  if (server?.found === true) lifetime.how = 'restart';
  started.defer(() => (lifetime.how === 'stop' ? server?.stop() : server?.leave()));
  const databaseUrl = server?.url ?? settings.databaseUrl ?? '';
  const connection = connectPostgres(
    databaseUrl,
    (error) => log.warn('The connection to the database was lost; trying again.', { error }),
    databaseConnections,
  );
  started.defer(() => connection.close());
  const { db, pool } = connection;
  await migrate(db);
  await migrateJobs(pool, log);
  const wakeups = await createPostgresWakeups({ url: databaseUrl, pool, clock: systemClock, log });
  started.defer(() => wakeups.close());

  const secrets = await createSecretBox(await loadMasterKey(dataDir, settings.secretKey));
  const gateway = await ensureGateway(gatewayOptions(settings, dataDir), log);
  started.defer(() => (lifetime.how === 'stop' ? gateway.stop() : gateway.leave()));
  const platform = await createLocalPlatform({
    dataDir,
    router: gateway.router,
    secretBox: secrets,
    clock: systemClock,
    log,
    hostEnv,
  });
  started.defer(() => (lifetime.how === 'stop' ? platform.stop() : platform.detach()));

  const metrics = createPrometheusMetrics({
    pipeline: platform.capabilities.pipeline,
    countBuildStarts: () => countBuildStarts(db),
    log,
  });
  started.defer(await serveMetrics(settings.metricsPort, metrics, log));

  const identity = createEmbeddedIdentity({ db, secrets, clock: systemClock, issuer: issuerOf(settings.baseUrl) });
  const packs = await openPackStorage(settings.objectStore, dataDir, log, tell);
  started.defer(() => packs.close());
  const git = createGitStorage({
    db,
    directory: join(dataDir, 'git'),
    files: packs.files,
    log,
    tolerated: settings.toleratedFaults,
  });
  started.defer(() => git.close());
  // Nobody else receives in this directory: what is in quarantine was left by a crash. An object store may have others.
  await git.sweep(settings.objectStore === undefined ? 0 : abandonedPushSeconds);
  const context: Context = {
    db,
    clock: systemClock,
    log,
    platform: { ...platform, builds: measureBuilds(platform.builds, metrics) },
    git: { ...git, maintenance: measureMaintenance(git.maintenance, metrics) },
    sources: createOutsideSourceHosts({
      allowPrivate: settings.allowPrivateSources,
      seconds: limits.push.seconds,
      directory: join(dataDir, 'sources'),
    }),
    jobs: graphileJobs,
    identity,
    secrets,
    addresses: createAddresses(settings),
    bindings: createBindings({ secrets }),
    wakeups,
    resolver: createNodeResolver(),
    settings,
  };
  const services = createServices(context);

  const resumedApps = await resumeApps(context);
  const worker = await startGraphileWorker({
    pool,
    db,
    handlers: measureJobs(createJobHandlers(context), metrics),
    log,
    concurrency: jobsAtOnce,
    soleWorker: true,
  });
  started.defer(() => worker.stop());
  const rateLimits = createPostgresRateLimits(db);
  const idempotencyKeys = createPostgresIdempotencyKeys({ db, secrets, clock: systemClock });
  const served = { ...services, pushes: measurePushes(services.pushes, metrics) };
  const closeApi = await serveApi({ settings, dataDir, log }, context, {
    services: served,
    rateLimits,
    idempotencyKeys,
    metrics,
  });
  started.defer(closeApi);
  const closeSsh = await serveSsh({ settings, dataDir, log }, context, served);
  started.defer(closeSsh);

  const sampling = new AbortController();
  const sampled = keepSampling(context, sampling.signal);
  started.defer(() => {
    sampling.abort();
    return sampled;
  });

  const housekeeping = startHousekeeping(
    [
      { name: 'rate limits', sweep: () => rateLimits.sweep() },
      { name: 'idempotency keys', sweep: () => idempotencyKeys.sweep() },
      { name: 'signing keys', sweep: () => identity.rotateKeys() },
      { name: 'failed logins', sweep: () => identity.sweepLoginAttempts() },
      { name: 'refresh tokens', sweep: () => sweepRefreshTokens(db, systemClock) },
      { name: 'samples of apps', sweep: () => sweepSamples(context) },
      { name: 'webhook deliveries', sweep: () => sweepDeliveries(context) },
      { name: 'build starts', sweep: () => foldBuildStarts(db) },
      { name: 'quarantines', sweep: () => git.sweep(abandonedPushSeconds) },
    ],
    log,
  );
  started.defer(() => housekeeping.stop());

  return {
    facts: { sandboxProblem: platform.capabilities.sandbox ? undefined : platform.capabilities.sandboxProblem, resumedApps },
    stop(how) {
      lifetime.how = how;
      return started.disposeAsync();
    },
  };
}

function checkSettings(settings: Settings): void {
  if (settings.platform !== 'local') {
    throw new StartError(`PAAS_PLATFORM: ${settings.platform} is not built yet; leave it unset to run on this machine.`);
  }
}

async function startEmbeddedPostgres(dataDir: string, log: Log, tell: (line: string) => void): Promise<KeptPostgres> {
  const directory = join(dataDir, 'postgres');
  if (!existsSync(directory)) tell('-----> Creating the database');
  return keepPostgres({ directory, log });
}

/** The API listens on a socket that only the gateway reaches: the addresses it forwards can be believed. */
async function serveApi(
  { settings, dataDir, log }: Pick<SingleMachineOptions, 'settings' | 'dataDir' | 'log'>,
  { db, clock, identity, git }: Context,
  parts: Pick<ApiOptions, 'rateLimits' | 'idempotencyKeys' | 'metrics'> & { services: Services },
): Promise<() => Promise<void>> {
  const api = createApi({
    issuer: issuerOf(settings.baseUrl),
    checkReady: async () => void (await sql`select 1`.execute(db)),
    ...parts,
    identity,
    clock,
    log,
    clientAddress: (request) => request.headers.get('x-forwarded-for')?.split(',').at(-1)?.trim() ?? 'unknown',
  });
  const gitOverHttp = createGitOverHttp({
    ...parts.services,
    identity,
    git: git.server,
    rateLimits: parts.rateLimits,
    clock,
    log,
  });
  const listener = getRequestListener((request) => gitOverHttp(request) ?? api.fetch(request));
  const server = createServer((request, response) => void listener(request, response));
  await listenOnSocket(server, gatewayFiles(dataDir).apiSocket);
  return async () => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
}

async function serveSsh(
  { settings, dataDir, log }: Pick<SingleMachineOptions, 'settings' | 'dataDir' | 'log'>,
  { git, clock }: Context,
  { sshKeys, pushes }: Services,
): Promise<() => Promise<void>> {
  const hostKeys = await loadHostKeys(join(dataDir, 'ssh'));
  const server = createSshServer({ sshKeys, pushes, git: git.server, hostKeys, limits: limits.ssh, clock, log });
  try {
    await server.listen(settings.sshPort, settings.host);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    const owner = await findPortOwner(settings.sshPort);
    const by = owner === undefined ? '' : ` (by pid ${owner.pid} ${owner.command})`;
    throw new StartError(`Port ${settings.sshPort} is taken${by}: set PAAS_SSH_PORT to another.`);
  }
  return () => server.close(sshGraceMilliseconds);
}
