import type { EventEmitter } from 'node:events';
import { type Kysely, sql } from 'kysely';
import type { Database } from '#shared/database/schema.ts';
import type { Log } from '#shared/log.ts';

const heartbeatSeconds = 3;
/** A worker silent for longer is dead. Several heartbeats, so that a stall of the event loop is not a death. */
const leaseSeconds = 15;

export interface LeaseOptions {
  db: Kysely<Database>;
  events: EventEmitter;
  log: Log;
  soleWorker: boolean;
}

/**
 * graphile-worker itself frees the jobs of a crashed worker only after hours. Each worker here renews a row; whoever is
 * alive frees what is locked by a worker without a fresh row.
 */
export async function keepLeases(options: LeaseOptions): Promise<{ release(): Promise<void> }> {
  const { db, events, log, soleWorker } = options;
  const workerIds = new Set<string>();
  events.on('worker:create', ({ worker }: { worker: { workerId: string } }) => {
    workerIds.add(worker.workerId);
    void beat();
  });

  async function beat(): Promise<void> {
    try {
      if (workerIds.size > 0) {
        await db
          .insertInto('worker_leases')
          .values([...workerIds].map((id) => ({ worker_id: id })))
          .onConflict((conflict) => conflict.column('worker_id').doUpdateSet({ heartbeat_at: sql<Date>`now()` }))
          .execute();
      }
      await freeJobsOfTheDead(db, leaseSeconds);
    } catch (error) {
      log.warn('Could not renew the worker leases; trying again.', { error });
    }
  }

  if (soleWorker) {
    await db.deleteFrom('worker_leases').execute();
    await freeJobsOfTheDead(db, 0);
  }
  const timer = setInterval(() => void beat(), heartbeatSeconds * 1000);
  return {
    async release() {
      clearInterval(timer);
      if (workerIds.size > 0)
        await db
          .deleteFrom('worker_leases')
          .where('worker_id', 'in', [...workerIds])
          .execute();
    },
  };
}

async function freeJobsOfTheDead(db: Kysely<Database>, seconds: number): Promise<void> {
  const dead = await sql<{ locked_by: string }>`
    select distinct locked_by from (
      select locked_by, locked_at from graphile_worker._private_jobs where locked_by is not null
      union all
      select locked_by, locked_at from graphile_worker._private_job_queues where locked_by is not null) held
    where locked_at <= now() - make_interval(secs => ${seconds})
      and not exists (
        select 1 from worker_leases where worker_id = locked_by and heartbeat_at > now() - make_interval(secs => ${leaseSeconds}))`.execute(
    db,
  );
  if (dead.rows.length === 0) return;
  const ids = dead.rows.map((row) => row.locked_by);
  await sql`select graphile_worker.force_unlock_workers(${ids}::text[])`.execute(db);
}
