import { setTimeout as delay } from 'node:timers/promises';
import type { TaskList } from 'graphile-worker';
import type pg from 'pg';
import type { Db } from '#shared/database/db.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { createFairSlots } from '#shared/jobs/graphile/fair-slots.ts';
import { keepLeases, type Leases } from '#shared/jobs/graphile/leases.ts';
import { startWorkerPool } from '#shared/jobs/graphile/worker-pool.ts';
import { type JobHandlers, type JobName, type JobSlots, type JobWorker, slotsOfJobs } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';

export interface GraphileWorkerOptions {
  pool: pg.Pool;
  db: Db;
  handlers: JobHandlers;
  log: Log;
  slots: WorkerSlots;
  /** True when no other worker process can be alive: jobs of dead ones are taken over at once, not when leases end. */
  soleWorker: boolean;
  /** Of a worker that does not renew it any more jobs are taken over after so long. */
  leaseSeconds?: number;
}

/** Jobs at once in this process. */
export type WorkerSlots = Readonly<Record<JobSlots, number>>;

/** A worker of graphile-worker for each: a problem of one with the database leaves the jobs of the other alone. */
export type JobPool = 'apps' | 'maintenance';

const pools: Readonly<Record<JobPool, readonly JobSlots[]>> = {
  apps: ['builds', 'releases', 'rollouts', 'apps'],
  maintenance: ['deletions', 'repositories', 'sources', 'domains'],
};

const defaultLeaseSeconds = 15;
const outageRetries = 5;
const outageRetryMilliseconds = 1000;

/** Starts taking jobs. Jobs locked by a dead worker are taken over within the lease time, or at once with `soleWorker`. */
export async function startGraphileWorker(options: GraphileWorkerOptions): Promise<JobWorker> {
  const leases = await keepLeases({ leaseSeconds: defaultLeaseSeconds, ...options });
  const started: JobWorker[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(started.map((pool) => pool.stop()));
    await leases.release();
  };
  try {
    for (const name of ['apps', 'maintenance'] as const) started.push(await startPool(options, name, leases));
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

function startPool(options: GraphileWorkerOptions, name: JobPool, leases: Leases): Promise<JobWorker> {
  const { pool, db, log, slots, handlers } = options;
  const counts = new Map(pools[name].map((kind) => [kind, slots[kind]]));
  const names = (Object.keys(handlers) as JobName[]).filter((job) => counts.has(slotsOfJobs[job]));
  return startWorkerPool({
    pool,
    log,
    slots: [...counts.values()].reduce((sum, count) => sum + count, 0),
    createTasks: (signal) => createTasks(names, { handlers, log }, signal),
    onStart: (events) => leases.follow(name, events),
    createFairSlots: () => createFairSlots({ db, log, counts }),
  });
}

function createTasks(
  names: readonly JobName[],
  { handlers, log }: Pick<GraphileWorkerOptions, 'handlers' | 'log'>,
  signal: AbortSignal,
): TaskList {
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (payload: unknown) => {
        const handler = handlers[name] as (payload: unknown, signal: AbortSignal) => Promise<void>;
        try {
          await retryOutages(() => handler(payload, signal), signal);
        } catch (error) {
          if (!signal.aborted) log.error('A job failed and will be tried again.', { job: name, error });
          throw error;
        }
      },
    ]),
  );
}

/**
 * Runs a job again that has lost its connection to the database, before it counts as failed: the delays of graphile-worker grow to
 * minutes within a few failures, and the connection is usually back in a second.
 */
async function retryOutages(run: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let retries = 0; ; retries += 1) {
    try {
      return await run();
    } catch (error) {
      if (signal.aborted || !isDatabaseOutage(error) || retries === outageRetries) throw error;
      await delay(outageRetryMilliseconds, undefined, { signal });
    }
  }
}
