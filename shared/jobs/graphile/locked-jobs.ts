/**
 * The one place that reads and writes graphile-worker's private tables: its public functions do not say which jobs and
 * queues are locked by whom, nor free a single one. docs/private-internals.md says what to do when an upgrade breaks it.
 */
import { type RawBuilder, sql } from 'kysely';
import type { Db } from '#shared/database/db.ts';

/** Which holders of locks are dead: a condition on `locked_by` and `locked_at`. */
export type IsDead = RawBuilder<boolean>;

/** Everybody but these is dead. */
export function isNoneOf(workerIds: readonly string[]): IsDead {
  return sql<boolean>`not locked_by = any(${workerIds}::text[])`;
}

/** Who has locked something for so long, without a lease that was renewed in that time. */
export function hasNoLease(seconds: number): IsDead {
  const limit = sql`now() - make_interval(secs => ${seconds})`;
  return sql<boolean>`locked_at <= ${limit}
    and not exists (select 1 from worker_leases where worker_id = locked_by and heartbeat_at > ${limit})`;
}

/** Unlocks the jobs and queues of dead workers: others take them. */
export async function freeJobs(db: Db, isDead: IsDead): Promise<void> {
  const dead = await sql<{ locked_by: string }>`
    select distinct locked_by from (
      select locked_by, locked_at from graphile_worker._private_jobs where locked_by is not null
      union all
      select locked_by, locked_at from graphile_worker._private_job_queues where locked_by is not null) locks
    where ${isDead}`.execute(db);
  if (dead.rows.length === 0) return;
  const ids = dead.rows.map((row) => row.locked_by);
  await sql`select graphile_worker.force_unlock_workers(${ids}::text[])`.execute(db);
  await removeReplacedJobs(db);
}

/** Replaced by a job of the same key while they ran: nobody is to run them again, and they would stay for ever. */
async function removeReplacedJobs(db: Db): Promise<void> {
  await sql`select graphile_worker.complete_jobs(array(
    select id from graphile_worker._private_jobs
    where locked_by is null and attempts >= max_attempts and last_error is null))`.execute(db);
}

/** Ids of the jobs that one of these workers has locked. */
export async function listLockedJobs(db: Db, workerIds: readonly string[]): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id::text from graphile_worker._private_jobs where locked_by = any(${workerIds}::text[])`.execute(db);
  return rows.map(({ id }) => id);
}

/** Unlocks these jobs, and their queues, where one of these workers has locked them. */
export async function unlockJobs(db: Db, workerIds: readonly string[], jobIds: readonly string[]): Promise<void> {
  await sql`
    with freed as (update graphile_worker._private_jobs set locked_at = null, locked_by = null
      where id = any(${jobIds}::bigint[]) and locked_by = any(${workerIds}::text[]) returning job_queue_id)
    update graphile_worker._private_job_queues set locked_at = null, locked_by = null
      where id in (select job_queue_id from freed) and locked_by = any(${workerIds}::text[])`.execute(db);
  await removeReplacedJobs(db);
}
