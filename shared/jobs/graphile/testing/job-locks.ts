import type pg from 'pg';

/** What a worker leaves that dies while it runs jobs: every job of the task is locked in its name, and every queue. */
export async function lockJobs(
  pool: Pick<pg.Pool, 'query'>,
  workerId: string,
  { task, secondsAgo = 0 }: { task?: string; secondsAgo?: number } = {},
): Promise<void> {
  const lock = `locked_by = $1, locked_at = now() - make_interval(secs => $2)`;
  await pool.query(
    `update graphile_worker._private_jobs jobs set ${lock}, attempts = 1 from graphile_worker._private_tasks tasks
      where tasks.id = jobs.task_id and ($3::text is null or tasks.identifier = $3)`,
    [workerId, secondsAgo, task ?? null],
  );
  await pool.query(
    `update graphile_worker._private_job_queues queues set ${lock} where id in (
      select job_queue_id from graphile_worker._private_jobs where locked_by = $1)`,
    [workerId, secondsAgo],
  );
}

export async function countJobs(pool: Pick<pg.Pool, 'query'>): Promise<number> {
  return (await pool.query('select from graphile_worker._private_jobs')).rowCount ?? 0;
}
