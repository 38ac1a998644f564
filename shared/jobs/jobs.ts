/**
 * Durable work: enqueued in the transaction that makes it necessary, run at least once by some worker process, again
 * after a crash within seconds. A handler must therefore be idempotent, and fence its writes with a token it claims
 * from the row it works on. Drivers: graphile-worker on PostgreSQL, and a fake.
 */
import type { Db } from '#shared/database/db.ts';
import type { AppId, BuildId, DeployId, RepositoryId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

export interface JobPayloads {
  build: { buildId: BuildId };
  'delete-cache': { appId: AppId };
  'collect-images': { appId: AppId };
  deploy: { deployId: DeployId };
  'ensure-app': { appId: AppId };
  'ensure-workload': { appId: AppId };
  restart: { appId: AppId };
  'ensure-addon': { appId: AppId; addonType: AddonType };
  'purge-app': { appId: AppId };
  'look-at-source': { appId: AppId; failures: number };
  'settle-domain': { appId: AppId; host: string };
  repack: { repositoryId: RepositoryId };
  'collect-garbage': { repositoryId: RepositoryId };
}

export type JobName = keyof JobPayloads;

/** Pools of a worker's slots. */
export type JobPool = 'apps' | 'maintenance';

export interface JobKind {
  /** All kinds of jobs that share a queue are in one pool: in two they would overtake each other. */
  readonly pool: JobPool;
  /**
   * Whether a job follows what the platform does, for minutes, and costs little itself. Of the others only a few run at
   * once, whichever pool they are in.
   */
  readonly waits: boolean;
}

export const jobKinds: Readonly<Record<JobName, JobKind>> = {
  build: { pool: 'apps', waits: true },
  'delete-cache': { pool: 'apps', waits: false },
  'collect-images': { pool: 'apps', waits: false },
  deploy: { pool: 'apps', waits: true },
  'ensure-app': { pool: 'apps', waits: false },
  'ensure-workload': { pool: 'apps', waits: false },
  restart: { pool: 'apps', waits: false },
  'ensure-addon': { pool: 'apps', waits: false },
  'purge-app': { pool: 'apps', waits: false },
  'look-at-source': { pool: 'maintenance', waits: false },
  'settle-domain': { pool: 'maintenance', waits: false },
  repack: { pool: 'maintenance', waits: false },
  'collect-garbage': { pool: 'maintenance', waits: false },
};

export interface EnqueueOptions {
  /** A second job with the same key replaces the first one while that has not started. */
  key?: string | undefined;
  /** Jobs of one queue run one after the other, in order. */
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
