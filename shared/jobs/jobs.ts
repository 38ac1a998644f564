/**
 * Durable work: enqueued in the transaction that makes it necessary, run at least once by some worker process, again
 * after a crash within seconds. A handler must therefore be idempotent, and fence its writes with a token it claims
 * from the row it works on. Drivers: graphile-worker on PostgreSQL, and a fake.
 */
import type { Db } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId, RepositoryId, TenantId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

export interface JobPayloads {
  build: { buildId: BuildId };
  'delete-cache': { appId: AppId };
  'collect-images': { appId: AppId };
  deploy: { deployId: DeployId };
  /** A deploy whose release has a release command. */
  'deploy-after-command': { deployId: DeployId };
  'ensure-app': { appId: AppId };
  /** As 'ensure-app', for an app that runs. */
  'repair-app': { appId: AppId };
  'ensure-workload': { appId: AppId };
  restart: { appId: AppId };
  'ensure-addon': { appId: AppId; addonType: AddonType };
  'purge-app': { appId: AppId };
  'look-at-source': { appId: AppId; failures: number };
  'report-build': { buildId: BuildId; failures: number };
  'settle-domain': { appId: AppId; host: string };
  repack: { repositoryId: RepositoryId };
  'collect-garbage': { repositoryId: RepositoryId };
}

export type JobName = keyof JobPayloads;

/** Kinds of slots of a worker. A job takes only a slot of its kind, so that no kind of work waits for another. */
export type JobSlots = 'builds' | 'releases' | 'rollouts' | 'apps' | 'deletions' | 'repositories' | 'sources' | 'domains';

/** The slots that each job takes. Jobs that share a queue and must not overtake each other take the same slots. */
export const slotsOfJobs: Readonly<Record<JobName, JobSlots>> = {
  build: 'builds',
  'delete-cache': 'builds',
  'collect-images': 'deletions',
  deploy: 'rollouts',
  'deploy-after-command': 'releases',
  'ensure-app': 'apps',
  'repair-app': 'apps',
  'ensure-workload': 'apps',
  restart: 'apps',
  'ensure-addon': 'apps',
  'purge-app': 'deletions',
  'look-at-source': 'sources',
  'report-build': 'sources',
  'settle-domain': 'domains',
  repack: 'repositories',
  'collect-garbage': 'repositories',
};

export interface EnqueueOptions {
  /** Whose work it is. Tenants with waiting jobs take turns, and none takes more slots than it leaves free. */
  tenant?: TenantId | undefined;
  /** A second job with the same key replaces the first one while that has not started. */
  key?: string | undefined;
  /** Jobs of one queue run one after the other; those that take the same slots in order. */
  queue?: string | undefined;
  runAt?: Date | undefined;
  /** With a key: a job that waits already is run when it was to be, not at `runAt`. */
  keepsTime?: boolean | undefined;
}

export interface Jobs {
  enqueue<Name extends JobName>(db: Db, name: Name, payload: JobPayloads[Name], options?: EnqueueOptions): Promise<void>;
}

/** `signal` aborts when the process is asked to stop: a handler then returns or throws soon, and the job is run again. */
export type JobHandlers = { [Name in JobName]: (payload: JobPayloads[Name], signal: AbortSignal) => Promise<void> };

export interface JobWorker {
  /** Resolves when running handlers have ended after their signal aborted. */
  stop(): Promise<void>;
}
