import { setTimeout as delay } from 'node:timers/promises';
import type { TaskList } from 'graphile-worker';
import type pg from 'pg';
import type { Db } from '#shared/database/db.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { keepLeases, type Leases } from '#shared/jobs/graphile/leases.ts';
import { startWorkerPool } from '#shared/jobs/graphile/worker-pool.ts';
import { type JobHandlers, type JobName, type JobPool, type JobWorker, jobKinds } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';
import { createSlots, type Slots } from '#shared/slots.ts';

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

/** Jobs at once in this process; see `jobKinds`. */
export interface WorkerSlots extends Readonly<Record<JobPool, number>> {
  /** Of those, in both pools together, that do not wait for the platform. */
  readonly working: number;
}

const defaultLeaseSeconds = 15;
const outageRetries = 5;
const outageRetryMilliseconds = 1000;

/** Starts taking jobs. Jobs locked by a dead worker are taken over within the lease time, or at once with `soleWorker`. */
export async function startGraphileWorker(options: GraphileWorkerOptions): Promise<JobWorker> {
  const leases = await keepLeases({ leaseSeconds: defaultLeaseSeconds, ...options });
  const pools: JobWorker[] = [];
  const working = createSlots(options.slots.working);
  const stop = async (): Promise<void> => {
    await Promise.all(pools.map((pool) => pool.stop()));
    await leases.release();
  };
  try {
    for (const name of ['apps', 'maintenance'] as const) pools.push(await startPool(options, { name, leases, working }));
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop };
}

interface PoolParts {
  name: JobPool;
  leases: Leases;
  working: Slots;
}

function startPool(
  { pool, log, slots, handlers }: GraphileWorkerOptions,
  { name, leases, working }: PoolParts,
): Promise<JobWorker> {
  return startWorkerPool({
    pool,
    log,
    slots: slots[name],
    createTasks: (signal) => createTasks({ handlers, name, log, working }, signal),
    onStart: (events) => leases.follow(name, events),
  });
}

type TaskParts = Pick<GraphileWorkerOptions, 'handlers' | 'log'> & Pick<PoolParts, 'name' | 'working'>;

function createTasks({ handlers, name: pool, log, working }: TaskParts, signal: AbortSignal): TaskList {
  const names = (Object.keys(handlers) as JobName[]).filter((name) => jobKinds[name].pool === pool);
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (payload: unknown) => {
        const handler = handlers[name] as (payload: unknown, signal: AbortSignal) => Promise<void>;
        const release = jobKinds[name].waits ? undefined : await working.take(signal);
        try {
          await retryOutages(() => handler(payload, signal), signal);
        } catch (error) {
          if (!signal.aborted) log.error('A job failed and will be tried again.', { job: name, error });
          throw error;
        } finally {
          release?.();
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
