import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '#shared/database/db.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import type { AppId, BuildId } from '#shared/ids.ts';
import { describeJobs } from '#shared/jobs/contract/jobs.ts';
import { FakeJobs } from '#shared/jobs/fake-jobs.ts';
import { graphileJobs, migrateJobs, startGraphileWorker } from '#shared/jobs/graphile/graphile-jobs.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';
import { createLog } from '#shared/log.ts';
import { startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { openTestPostgres } from '#test/support/database/test-postgres.ts';

const appJob = (name: string) => ({ appId: name as AppId });
const buildJob = (name: string) => ({ buildId: name as BuildId });

const log = createLog('silent', () => undefined);

async function openGraphile(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await migrateJobs(database.pool, log);
  return database;
}

function startWorker({ pool, db }: TestDatabase, handlers: JobHandlers, soleWorker = false) {
  return startGraphileWorker({ pool, db, handlers, log, concurrency: 4, soleWorker });
}

const patience = { timeout: 25_000 };

const untouched: JobHandlers = {
  build: () => Promise.resolve(),
  'delete-cache': () => Promise.resolve(),
  deploy: () => Promise.resolve(),
  'ensure-app': () => Promise.resolve(),
  'ensure-workload': () => Promise.resolve(),
  restart: () => Promise.resolve(),
  'ensure-addon': () => Promise.resolve(),
  'purge-app': () => Promise.resolve(),
  'settle-domain': () => Promise.resolve(),
  repack: () => Promise.resolve(),
  'collect-garbage': () => Promise.resolve(),
};

describeJobs('memory', () => {
  const jobs = new FakeJobs();
  return Promise.resolve({
    db: undefined as unknown as Db,
    jobs,
    start: (handlers) => Promise.resolve(jobs.start(handlers)),
    close: () => Promise.resolve(),
  });
});

describeJobs('graphile-worker', async () => {
  const database = await openGraphile();
  return {
    db: database.db,
    jobs: graphileJobs,
    start: (handlers) => startWorker(database, handlers),
    close: () => database.close(),
  };
});

describe('graphile-worker', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await openGraphile();
  });
  afterEach(() => database.close());

  it('forgets a job whose transaction is rolled back', async () => {
    const failing = database.db.transaction().execute(async (trx) => {
      await graphileJobs.enqueue(trx, 'restart', appJob('ghost'));
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    const { rows } = await database.pool.query('select 1 from graphile_worker.jobs');
    expect(rows).toEqual([]);
  });

  it('takes over at once what a dead worker held, when it is the only one', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('orphan'), { queue: 'q' });
    await database.pool.query(`update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1`);
    await database.pool.query(`update graphile_worker._private_job_queues set locked_by = 'dead', locked_at = now()`);
    const seen = Promise.withResolvers<string>();
    const worker = await startWorker(
      database,
      { ...untouched, restart: ({ appId }) => Promise.resolve(seen.resolve(appId)) },
      true,
    );
    expect(await seen.promise).toBe('orphan');
    await worker.stop();
  });

  it('takes over what a dead worker gets after its death, its last statement being still under way, when it is the only one', async () => {
    const seen = Promise.withResolvers<string>();
    const worker = await startWorker(
      database,
      { ...untouched, restart: ({ appId }) => Promise.resolve(seen.resolve(appId)) },
      true,
    );
    await database.pool.query(`insert into worker_leases values ('dead', now() + interval '1 hour')`);
    await database.db.transaction().execute(async (trx) => {
      await graphileJobs.enqueue(trx, 'restart', appJob('orphan'));
      await sql`update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1`.execute(trx);
    });
    expect(await seen.promise).toBe('orphan');
    await worker.stop();
  });

  it.each([true, false])(
    'runs what it took and never heard of, the connection being lost before the answer came (the only worker: %s)',
    async (soleWorker) => {
      const seen: string[] = [];
      const { pool, db } = database;
      const handlers: JobHandlers = {
        ...untouched,
        restart: ({ appId }) => Promise.resolve(void seen.push(appId)),
      };
      const worker = await startGraphileWorker({ pool, db, handlers, log, concurrency: 4, soleWorker, leaseSeconds: 0.5 });
      await expect.poll(async () => (await pool.query('select from worker_leases')).rowCount).toBe(1);
      await db.transaction().execute(async (trx) => {
        await graphileJobs.enqueue(trx, 'restart', appJob('unheard of'), { queue: 'q' });
        for (const table of ['jobs', 'job_queues'])
          await sql`update ${sql.table(`graphile_worker._private_${table}`)}
            set locked_by = (select worker_id from worker_leases), locked_at = now()`.execute(trx);
      });
      await graphileJobs.enqueue(db, 'restart', appJob('behind it'), { queue: 'q' });
      await expect.poll(() => seen, patience).toEqual(['unheard of', 'behind it']);
      await worker.stop();
    },
  );

  it('leaves nothing of a job that was replaced while the worker that ran it died', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('old'), { key: 'a' });
    await database.pool.query(`update graphile_worker._private_jobs set locked_by = 'dead', locked_at = now(), attempts = 1`);
    await graphileJobs.enqueue(database.db, 'restart', appJob('new'), { key: 'a' });
    const seen: string[] = [];
    const worker = await startWorker(
      database,
      { ...untouched, restart: ({ appId }) => Promise.resolve(void seen.push(appId)) },
      true,
    );
    const left = async () => (await database.pool.query('select 1 from graphile_worker._private_jobs')).rowCount;
    await expect.poll(left, { timeout: 20_000 }).toBe(0);
    await worker.stop();
    expect(seen).toEqual(['new']);
  });

  it.each([true, false])('runs a job once that takes longer than any lease (the only worker: %s)', async (soleWorker) => {
    let runs = 0;
    const ended = Promise.withResolvers<void>();
    const { pool, db } = database;
    const readBeat = async () =>
      (await pool.query<{ beat: string }>('select heartbeat_at::text as beat from worker_leases')).rows[0]?.beat;
    const build = async (): Promise<void> => {
      runs += 1;
      const beats = new Set<string | undefined>();
      while (beats.size < 12) {
        beats.add(await readBeat());
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      ended.resolve();
    };
    await graphileJobs.enqueue(db, 'build', buildJob('long'));
    const handlers = { ...untouched, build };
    const worker = await startGraphileWorker({ pool, db, handlers, log, concurrency: 4, soleWorker, leaseSeconds: 0.5 });
    await ended.promise;
    await worker.stop();
    expect(runs).toBe(1);
  });

  it('takes over what a dead worker held once its lease is over, and leaves the living alone', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('of the dead'));
    await graphileJobs.enqueue(database.db, 'build', buildJob('of the living'));
    await database.pool.query(
      `insert into worker_leases values ('dead', now() - interval '1 minute'), ('living', now() + interval '1 minute')`,
    );
    await database.pool.query(`update graphile_worker._private_jobs jobs set locked_at = now() - interval '1 minute',
      locked_by = case when tasks.identifier = 'restart' then 'dead' else 'living' end
      from graphile_worker._private_tasks tasks where tasks.id = jobs.task_id`);
    const seen: string[] = [];
    const done = Promise.withResolvers<void>();
    const worker = await startWorker(database, {
      ...untouched,
      build: ({ buildId }) => Promise.resolve(void seen.push(buildId)),
      restart: ({ appId }) => {
        seen.push(appId);
        done.resolve();
        return Promise.resolve();
      },
    });
    await done.promise;
    await worker.stop();
    expect(seen).toEqual(['of the dead']);
  });
});

it('a worker outlives its database: what failed while that was away is run again, and new jobs too', async () => {
  const server = await openTestPostgres();
  const { db, pool, close } = connectPostgres(server.url, () => undefined, 5);
  await migrate(db);
  await migrateJobs(pool, log);
  const runs: string[] = [];
  const started = Promise.withResolvers<void>();
  const handlers: JobHandlers = {
    ...untouched,
    // It would go on for long, and needs no database for that.
    build: (_, signal) => {
      runs.push('build');
      started.resolve();
      if (runs.filter((run) => run === 'build').length > 1) return Promise.resolve();
      return new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
      });
    },
    restart: async ({ appId }: { appId: string }) => {
      runs.push(appId);
      if (runs.filter((run) => run === appId).length > 1 || appId !== 'first') return;
      await server.server.stop();
      throw new Error('nobody can be told of this');
    },
  };
  const worker = await startGraphileWorker({ pool, db, handlers, log, concurrency: 4, soleWorker: true, leaseSeconds: 2 });
  try {
    await graphileJobs.enqueue(db, 'build', buildJob('long'));
    await started.promise;
    await graphileJobs.enqueue(db, 'restart', appJob('first'));
    await expect.poll(() => findPostmaster(join(server.directory, 'postgres', 'cluster')), patience).toBeUndefined();
    await startPostgres({ directory: join(server.directory, 'postgres'), settings: { fsync: 'off' }, log });
    await expect.poll(() => runs.toSorted(), patience).toEqual(['build', 'build', 'first', 'first']);
    await graphileJobs.enqueue(db, 'restart', appJob('second'));
    await expect.poll(() => runs.at(-1), patience).toBe('second');
    expect(runs).toHaveLength(5);
  } finally {
    await worker.stop();
    await close();
    await (await startPostgres({ directory: join(server.directory, 'postgres'), log })).stop();
    await server.close();
  }
});
