import type { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Db, UpdatedAt } from '#shared/database/db.ts';
import { freeJobs, hasNoLease, isNoneOf, listLockedJobs, unlockJobs } from '#shared/jobs/graphile/locked-jobs.ts';
import type { Log } from '#shared/log.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** One row for each pool of a worker process. */
    worker_leases: { worker_id: string; heartbeat_at: UpdatedAt };
  }
}

interface JobEvent {
  /** A string or a number, as the pool reads bigint. */
  job: { id: unknown };
}

/** So many in a lease that a stall of the event loop is not a death. */
const heartbeats = 5;
/** A pool that starts waits so long for a search for dead workers. */
const longestSearchMilliseconds = 5000;

export interface LeaseOptions {
  db: Db;
  log: Log;
  soleWorker: boolean;
  /** A worker silent for longer is dead. */
  leaseSeconds: number;
}

export interface Leases {
  /**
   * Renews a lease for a pool that is about to start, and none any more for the one of the same name before it. The pool may start
   * when it resolves: no search for dead workers is under way that does not know it.
   */
  follow(name: string, events: EventEmitter): Promise<void>;
  release(): Promise<void>;
}

/** A pool of workers as graphile-worker knows it. */
interface PoolLease {
  /** The name under which it locks jobs; undefined until it has started. */
  id: string | undefined;
  /** Ids of the jobs that have started and not ended. */
  readonly jobs: Set<string>;
}

/**
 * graphile-worker itself frees the jobs of a crashed worker only after hours. Each process here renews a row for each of
 * its pools, under the name by which that locks jobs; whoever is alive frees what is locked without a fresh row.
 */
export async function keepLeases(options: LeaseOptions): Promise<Leases> {
  const { db, log, soleWorker, leaseSeconds } = options;
  const pools = new Map<string, PoolLease>();
  const ids = (): string[] => [...pools.values()].flatMap(({ id }) => id ?? []);
  /** Searches for dead workers that are under way. */
  const searches = new Set<Promise<void>>();
  /** What was locked in our name at the last beat, and run by nobody. */
  let unheardOf: readonly string[] = [];

  // Also later than at the start: what a dead worker had asked for, the database may still have done after its death.
  const freeJobsOfTheDead = async (): Promise<void> => {
    if (!soleWorker) return await freeJobs(db, hasNoLease(leaseSeconds));
    // A pool that is starting may lock jobs under a name that is not known yet.
    if ([...pools.values()].some(({ id }) => id === undefined)) return;
    const search = freeJobs(db, isNoneOf(ids()));
    searches.add(search);
    await search.finally(() => searches.delete(search));
  };

  /**
   * The database may have locked a job for a worker whose connection was lost before it heard so. At one beat alone it is
   * one whose answer is on its way, or that is over and about to be recorded.
   */
  async function freeJobsUnheardOf(): Promise<void> {
    const ours = ids();
    const locked = await listLockedJobs(db, ours);
    const before = unheardOf;
    const heardOf = new Set([...pools.values()].flatMap(({ jobs }) => [...jobs]));
    unheardOf = locked.filter((id) => !heardOf.has(id));
    const lost = unheardOf.filter((id) => before.includes(id));
    if (lost.length === 0) return;
    await unlockJobs(db, ours, lost);
    log.warn('Jobs that this worker took without hearing of it are free again.', { jobs: lost.length });
  }

  async function beat(): Promise<void> {
    try {
      const rows = ids().map((id) => ({ worker_id: id }));
      if (rows.length > 0) {
        await db
          .insertInto('worker_leases')
          .values(rows)
          .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ heartbeat_at: sql<Date>`now()` }))
          .execute();
      }
      await freeJobsOfTheDead();
      await freeJobsUnheardOf();
    } catch (error) {
      log.warn('Could not renew the worker leases; trying again.', { error });
    }
  }

  if (soleWorker) {
    await db.deleteFrom('worker_leases').execute();
    await freeJobsOfTheDead();
  }
  const timer = setInterval(() => void beat(), (leaseSeconds * 1000) / heartbeats);
  return {
    async follow(name, events) {
      const pool: PoolLease = { id: undefined, jobs: new Set() };
      pools.set(name, pool);
      events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
        pool.id = workerPool.id;
        void beat();
      });
      events.on('job:start', ({ job }: JobEvent) => pool.jobs.add(String(job.id)));
      events.on('job:complete', ({ job }: JobEvent) => pool.jobs.delete(String(job.id)));
      // One whose connection is lost ends nowhere.
      const overdue = delay(longestSearchMilliseconds, undefined, { ref: false });
      await Promise.race([Promise.allSettled(searches), overdue]);
    },
    async release() {
      clearInterval(timer);
      const released = ids();
      if (released.length > 0) await db.deleteFrom('worker_leases').where('worker_id', 'in', released).execute();
    },
  };
}
