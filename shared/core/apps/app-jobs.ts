/**
 * Every job of an app, with its tenant, key and queue. Jobs of one queue run one after the other: an app's builds in one queue; its
 * deploys, restarts and changes of its add-ons in the other. Those that take the same slots (`slotsOfJobs`) run in order. A job with
 * a key replaces one that has the key and waits.
 */
import { readTenantOfApp } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId } from '#shared/ids.ts';
import type { EnqueueOptions, JobName, JobPayloads } from '#shared/jobs/jobs.ts';
import type { AddonType } from '#shared/platform/addons.ts';

type JobContext = Pick<Context, 'jobs'>;
type Enqueue = <Name extends JobName>(name: Name, payload: JobPayloads[Name], options: EnqueueOptions) => Promise<void>;

const buildQueue = (appId: AppId): string => `build:${appId}`;
const deployQueue = (appId: AppId): string => `deploy:${appId}`;

/** Enqueues a job in the name of the app's tenant. */
function enqueueFor({ jobs }: JobContext, db: Db, appId: AppId): Enqueue {
  return async (name, payload, options) =>
    jobs.enqueue(db, name, payload, { ...options, tenant: await readTenantOfApp(db, appId) });
}

/** Runs a build. */
export async function enqueueBuild(context: JobContext, db: Db, appId: AppId, buildId: BuildId): Promise<void> {
  await enqueueFor(context, db, appId)('build', { buildId }, { queue: buildQueue(appId) });
}

/** Deletes the build cache, before any build of the app that is started from now on. */
export async function enqueueDeleteCache(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('delete-cache', { appId }, { queue: buildQueue(appId) });
}

/** Deletes images that no release needs any more, while no build of the app runs. */
export async function enqueueCollectImages(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('collect-images', { appId }, { queue: buildQueue(appId), key: `images:${appId}` });
}

/** Rolls a release out, and before that runs its release command if it has one: these have slots of their own. */
export async function enqueueDeploy(
  context: JobContext,
  db: Db,
  appId: AppId,
  { deployId, hasCommand }: { deployId: DeployId; hasCommand: boolean },
): Promise<void> {
  await enqueueFor(context, db, appId)(
    hasCommand ? 'deploy-after-command' : 'deploy',
    { deployId },
    { queue: deployQueue(appId) },
  );
}

/** Makes what the platform needs around an app. It shares the deploys' queue: nothing of the app runs before. */
export async function enqueueEnsureApp(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('ensure-app', { appId }, { queue: deployQueue(appId), key: `ensure-app:${appId}` });
}

/** Makes again what the platform needs around an app that runs: at once, not behind its deploys. */
export async function enqueueRepairApp(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('repair-app', { appId }, { key: `repair-app:${appId}` });
}

/** Makes what runs match the database: the current release, or nothing for a deleted app. */
export async function enqueueEnsureWorkload(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('ensure-workload', { appId }, { queue: deployQueue(appId), key: `ensure:${appId}` });
}

/** Replaces the app's instances one by one. */
export async function enqueueRestart(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('restart', { appId }, { queue: deployQueue(appId), key: `restart:${appId}` });
}

/**
 * Makes an add-on's servers match its row. It shares the deploys' queue and the slots of what makes apps run: servers start before the
 * processes of an app that starts again.
 * @param runAt left out: as soon as possible
 */
export async function enqueueEnsureAddon(
  context: JobContext,
  db: Db,
  appId: AppId,
  addonType: AddonType,
  runAt?: Date,
): Promise<void> {
  const options = { queue: deployQueue(appId), key: `addon:${addonType}:${appId}`, runAt };
  await enqueueFor(context, db, appId)('ensure-addon', { appId, addonType }, options);
}

/** Looks for the proof of a domain. */
export async function enqueueSettleDomain(context: JobContext, db: Db, appId: AppId, host: string, runAt: Date): Promise<void> {
  await enqueueFor(context, db, appId)('settle-domain', { appId, host }, { runAt, key: `domain:${appId}:${host}` });
}

/** Purges a deleted app once it can no longer be restored. */
export async function enqueuePurge(context: JobContext, db: Db, appId: AppId, runAt: Date): Promise<void> {
  await enqueueFor(context, db, appId)('purge-app', { appId }, { runAt, key: `purge:${appId}` });
}

/** Purges a deleted app once nothing of it is under way. */
export async function enqueuePurgeNow(context: JobContext, db: Db, appId: AppId): Promise<void> {
  await enqueueFor(context, db, appId)('purge-app', { appId }, { queue: deployQueue(appId), key: `purge:${appId}` });
}

/**
 * Asks the git host of the app's source what is new.
 * @param options `failures`: how often in a row it could not be asked
 */
export async function enqueueLook(
  context: JobContext,
  db: Db,
  appId: AppId,
  { runAt, failures }: { runAt: Date; failures: number },
): Promise<void> {
  await enqueueFor(context, db, appId)('look-at-source', { appId, failures }, { runAt, key: `look:${appId}` });
}

/**
 * Tells the git host of the app's source how a build goes.
 * @param options `failures`: how often in a row it could not be told
 */
export async function enqueueReport(
  context: JobContext,
  db: Db,
  appId: AppId,
  { buildId, runAt, failures = 0 }: { buildId: BuildId; runAt?: Date; failures?: number },
): Promise<void> {
  await enqueueFor(context, db, appId)('report-build', { buildId, failures }, { runAt, key: `report:${buildId}` });
}
