/**
 * Every job of an app, with its key and queue. Jobs of one queue run one after the other: an app's builds in one queue; its
 * deploys, restarts and changes of its add-ons in the other. A job with a key replaces one that has the key and waits.
 */
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

type JobContext = Pick<Context, 'jobs'>;

const buildQueue = (appId: AppId): string => `build:${appId}`;
const deployQueue = (appId: AppId): string => `deploy:${appId}`;

/** Runs a build. */
export async function enqueueBuild({ jobs }: JobContext, db: Db, appId: AppId, buildId: BuildId): Promise<void> {
  await jobs.enqueue(db, 'build', { buildId }, { queue: buildQueue(appId) });
}

/** Deletes the build cache, before any build of the app that is started from now on. */
export async function enqueueDeleteCache({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'delete-cache', { appId }, { queue: buildQueue(appId) });
}

/** Deletes images that no release needs any more, while no build of the app runs. */
export async function enqueueCollectImages({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'collect-images', { appId }, { queue: buildQueue(appId), key: `images:${appId}` });
}

/** Rolls a release out. */
export async function enqueueDeploy({ jobs }: JobContext, db: Db, appId: AppId, deployId: DeployId): Promise<void> {
  await jobs.enqueue(db, 'deploy', { deployId }, { queue: deployQueue(appId) });
}

/** Makes what the platform needs around an app. It shares the deploys' queue: nothing of the app runs before. */
export async function enqueueEnsureApp({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'ensure-app', { appId }, { queue: deployQueue(appId), key: `ensure-app:${appId}` });
}

/** Makes what runs match the database: the current release, or nothing for a deleted app. */
export async function enqueueEnsureWorkload({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'ensure-workload', { appId }, { queue: deployQueue(appId), key: `ensure:${appId}` });
}

/** Replaces the app's instances one by one. */
export async function enqueueRestart({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'restart', { appId }, { queue: deployQueue(appId), key: `restart:${appId}` });
}

/**
 * Makes an add-on's servers match its row. It shares the deploys' queue: servers are removed after the release that no
 * longer uses them is live, and start before the processes of an app that starts again.
 * @param runAt left out: as soon as possible
 */
export async function enqueueEnsureAddon(
  { jobs }: JobContext,
  db: Db,
  appId: AppId,
  addonType: AddonType,
  runAt?: Date,
): Promise<void> {
  const options = { queue: deployQueue(appId), key: `addon:${addonType}:${appId}`, runAt };
  await jobs.enqueue(db, 'ensure-addon', { appId, addonType }, options);
}

/**
 * Asks the git host of the app's source what is new.
 * @param options `failures`: how often in a row it could not be asked
 */
export async function enqueueLook(
  { jobs }: JobContext,
  db: Db,
  appId: AppId,
  { runAt, failures }: { runAt: Date; failures: number },
): Promise<void> {
  await jobs.enqueue(db, 'look-at-source', { appId, failures }, { runAt, key: `look:${appId}` });
}

/** Looks for the proof of a domain. */
export async function enqueueSettleDomain({ jobs }: JobContext, db: Db, appId: AppId, host: string, runAt: Date): Promise<void> {
  await jobs.enqueue(db, 'settle-domain', { appId, host }, { runAt, key: `domain:${appId}:${host}` });
}

/** Purges a deleted app once it can no longer be restored. */
export async function enqueuePurge({ jobs }: JobContext, db: Db, appId: AppId, runAt: Date): Promise<void> {
  await jobs.enqueue(db, 'purge-app', { appId }, { runAt, key: `purge:${appId}` });
}

/** Purges a deleted app as soon as the deploy that may be running has ended. */
export async function enqueuePurgeNow({ jobs }: JobContext, db: Db, appId: AppId): Promise<void> {
  await jobs.enqueue(db, 'purge-app', { appId }, { queue: deployQueue(appId), key: `purge:${appId}` });
}
