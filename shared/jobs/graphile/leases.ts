import type { EventEmitter } from 'node:events';
import { type Kysely, type RawBuilder, sql } from 'kysely';
import type { Tables, UpdatedAt } from '#shared/database/db.ts';
import type { Log } from '#shared/log.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** One row for each worker process. */
    worker_leases: { worker_id: string; heartbeat_at: UpdatedAt };
  }
}

interface JobEvent {
  /** A string or a number, as the pool reads bigint. */
  job: { id: unknown };
}

/** So many in a lease that a stall of the event loop is not a death. */
const heartbeats = 5;

export interface LeaseOptions {
  db: Kysely<Tables>;
  events: EventEmitter;
  log: Log;
  soleWorker: boolean;
  /** A worker silent for longer is dead. */
  leaseSeconds: number;
}

/**
 * graphile-worker itself frees the jobs of a crashed worker only after hours. Each process here renews a row in the name
 * under which it locks jobs, that of its pool of workers; whoever is alive frees what is locked without a fresh row.
 */
export async function keepLeases(options: LeaseOptions): Promise<{ release(): Promise<void> }> {
  const { db, events, log, soleWorker, leaseSeconds } = options;
  let poolId: string | undefined;
  /** Ids of jobs that a handler in this process works on. */
  const running = new Set<string>();
  events.on('job:start', ({ job }: JobEvent) => running.add(String(job.id)));
  events.on('job:complete', ({ job }: JobEvent) => running.delete(String(job.id)));
  /** What was held in our name at the last beat, and run by nobody. */
  let unheardOf: readonly string[] = [];
  events.on('pool:create', ({ workerPool }: { workerPool: { id: string } }) => {
    poolId = workerPool.id;
    void beat();
  });

  function freeJobsOfTheDead(): Promise<void> {
    // Also later than at the start: what a dead worker had asked for, the database may still have done after its death.
    if (soleWorker) return freeJobs(db, sql`locked_by is distinct from ${poolId ?? null}::text`);
    const lease = sql`now() - make_interval(secs => ${leaseSeconds})`;
    return freeJobs(
      db,
      sql`locked_at <= ${lease}
        and not exists (select 1 from worker_leases where worker_id = locked_by and heartbeat_at > ${lease})`,
    );
  }

  /**
   * The database may have locked a job for a worker whose connection was lost before it heard so. At one beat alone it is
   * one that is being told of, or that is over and about to be recorded.
   */
  async function freeJobsUnheardOf(): Promise<void> {
    const held = await sql<{ id: string }>`
      select id::text from graphile_worker._private_jobs where locked_by = ${poolId ?? null}::text`.execute(db);
    const before = unheardOf;
    unheardOf = held.rows.map(({ id }) => id).filter((id) => !running.has(id));
    const lost = unheardOf.filter((id) => before.includes(id));
    if (lost.length === 0) return;
    await sql`
      with freed as (update graphile_worker._private_jobs set locked_at = null, locked_by = null
        where id = any(${lost}::bigint[]) and locked_by = ${poolId ?? null}::text returning job_queue_id)
      update graphile_worker._private_job_queues set locked_at = null, locked_by = null
        where id in (select job_queue_id from freed) and locked_by = ${poolId ?? null}::text`.execute(db);
    log.warn('Jobs that this worker took without hearing of it are free again.', { jobs: lost.length });
  }

  async function beat(): Promise<void> {
    try {
      if (poolId !== undefined) {
        await db
          .insertInto('worker_leases')
          .values({ worker_id: poolId })
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
    async release() {
      clearInterval(timer);
      if (poolId !== undefined) await db.deleteFrom('worker_leases').where('worker_id', '=', poolId).execute();
    },
  };
}

async function freeJobs(db: Kysely<Tables>, isDead: RawBuilder<boolean>): Promise<void> {
  const dead = await sql<{ locked_by: string }>`
    select distinct locked_by from (
      select locked_by, locked_at from graphile_worker._private_jobs where locked_by is not null
      union all
      select locked_by, locked_at from graphile_worker._private_job_queues where locked_by is not null) held
    where ${isDead}`.execute(db);
  if (dead.rows.length === 0) return;
  const ids = dead.rows.map((row) => row.locked_by);
  await sql`select graphile_worker.force_unlock_workers(${ids}::text[])`.execute(db);
  // Replaced by a job of the same key while they ran: nobody is to run them again, and they would stay for ever.
  await sql`select graphile_worker.complete_jobs(array(
    select id from graphile_worker._private_jobs
    where locked_by is null and attempts >= max_attempts and last_error is null))`.execute(db);
}
