import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { freeJobs, isNoneOf, listLockedJobs, unlockJobs } from '#shared/jobs/graphile/locked-jobs.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { countJobs, lockJobs } from '#shared/jobs/graphile/testing/job-locks.ts';
import { appJob } from '#shared/jobs/testing/idle-handlers.ts';
import { createLog } from '#shared/log.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
let version: string;
beforeAll(async () => {
  database = await createTestDatabase();
  await migrateJobs(
    database.pool,
    createLog('silent', () => undefined),
  );
  const manifest = fileURLToPath(new URL('../../../node_modules/graphile-worker/package.json', import.meta.url));
  ({ version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string });
});
afterAll(() => database.close());

/** What `locked-jobs.ts` uses and graphile-worker does not document; see docs/private-internals.md. */
const used = {
  _private_jobs: ['id', 'job_queue_id', 'locked_by', 'locked_at', 'attempts', 'max_attempts', 'last_error'],
  _private_job_queues: ['id', 'locked_by', 'locked_at'],
};

it.each(Object.entries(used))('graphile-worker has the private table %s with the columns that we use', async (table, columns) => {
  const { rows } = await database.pool.query<{ column_name: string }>(
    `select column_name from information_schema.columns where table_schema = 'graphile_worker' and table_name = $1`,
    [table],
  );
  const known = rows.map(({ column_name }) => column_name);
  const missing = columns.filter((column) => !known.includes(column));
  expect(missing, `graphile-worker ${version} has no ${missing.join(', ')} in ${table}`).toEqual([]);
});

it.each(['add_job', 'force_unlock_workers', 'complete_jobs'])('graphile-worker has the function %s', async (name) => {
  const { rowCount } = await database.pool.query(
    `select from pg_proc join pg_namespace on pg_namespace.oid = pronamespace where nspname = 'graphile_worker' and proname = $1`,
    [name],
  );
  expect(rowCount, `graphile-worker ${version} has no function ${name}`).toBe(1);
});

it('frees the jobs and queues of others, and single jobs with their queue', async () => {
  const { db, pool } = database;
  const isFree = async (): Promise<boolean> => {
    const { rows } = await pool.query<{ free: boolean }>(
      `select bool_and(jobs.is_available and queues.is_available) as free from graphile_worker._private_jobs jobs
        join graphile_worker._private_job_queues queues on queues.id = jobs.job_queue_id`,
    );
    return rows[0]?.free === true;
  };
  await graphileJobs.enqueue(db, 'restart', appJob('a'), { queue: 'q' });
  expect(await isFree(), `graphile-worker ${version} does not take a new job as available`).toBe(true);
  await lockJobs(pool, 'somebody');
  expect(await isFree(), `graphile-worker ${version} takes a locked job as available`).toBe(false);
  await freeJobs(db, isNoneOf(['somebody']));
  expect(await listLockedJobs(db, ['somebody'])).toHaveLength(1);
  await freeJobs(db, isNoneOf(['somebody else']));
  expect(await isFree()).toBe(true);

  await lockJobs(pool, 'somebody');
  const ids = await listLockedJobs(db, ['somebody']);
  await unlockJobs(db, ['somebody else'], ids);
  expect(await isFree()).toBe(false);
  await unlockJobs(db, ['somebody'], ids);
  expect(await isFree()).toBe(true);
  expect(await countJobs(pool)).toBe(1);
});

it.each(['freed with their dead worker', 'unlocked one by one'])(
  'jobs that were replaced while they ran are removed when they are %s',
  async (how) => {
    const { db, pool } = database;
    await pool.query('delete from graphile_worker._private_jobs');
    await graphileJobs.enqueue(db, 'restart', appJob('a'), { key: how });
    await lockJobs(pool, 'somebody');
    const ids = await listLockedJobs(db, ['somebody']);
    await graphileJobs.enqueue(db, 'restart', appJob('a'), { key: how });
    expect(await countJobs(pool)).toBe(2);
    if (how.startsWith('freed')) await freeJobs(db, isNoneOf(['somebody else']));
    else await unlockJobs(db, ['somebody'], ids);
    expect(await countJobs(pool)).toBe(1);
  },
);
