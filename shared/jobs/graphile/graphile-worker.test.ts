import { join } from 'node:path';
import { CompiledQuery } from 'kysely';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '#shared/database/db.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { startGraphileWorker } from '#shared/jobs/graphile/graphile-worker.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { countJobs, lockJobs } from '#shared/jobs/graphile/testing/job-locks.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';
import { appJob, buildJob, idleHandlers } from '#shared/jobs/testing/idle-handlers.ts';
import { createLog } from '#shared/log.ts';
import { startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { findPostmaster } from '#shared/platform/local/postgres/postmaster.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { openTestPostgres } from '#test/support/database/test-postgres.ts';

const log = createLog('silent', () => undefined);
const slots = { builds: 2, releases: 2, rollouts: 2, apps: 4, deletions: 2, repositories: 2, sources: 2, domains: 1 };
const patience = { timeout: 25_000 };

async function openGraphile(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  await migrateJobs(database.pool, log);
  return database;
}

function startWorker({ pool, db }: TestDatabase, handlers: JobHandlers, soleWorker = false) {
  return startGraphileWorker({ pool, db, handlers, log, slots, soleWorker });
}

/** The same database, whose queries wait for `delay` before they are sent. */
function delayQueries(db: Db, delay: (query: string) => Promise<void>): Db {
  const executor = replaceProperty(db.getExecutor(), 'executeQuery', async (...args) => {
    await delay(args[0].sql);
    return db.getExecutor().executeQuery(...args);
  });
  return replaceProperty(db, 'getExecutor', () => executor);
}

function replaceProperty<Target extends object, Name extends keyof Target>(
  target: Target,
  name: Name,
  value: Target[Name],
): Target {
  const read = (wanted: string | symbol): unknown => {
    const found: unknown = wanted === name ? value : Reflect.get(target, wanted);
    return typeof found === 'function' ? (found.bind(target) as unknown) : found;
  };
  return new Proxy(target, { get: (_, wanted) => read(wanted) });
}

describe('graphile-worker', () => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await openGraphile();
  });
  afterEach(() => database.close());

  /** Enqueues a job that is locked in the worker's name from its first moment. */
  const enqueueLocked = (workerId: string, enqueue: (trx: Db) => Promise<void>): Promise<void> =>
    database.db.transaction().execute(async (trx) => {
      await enqueue(trx);
      const query = (text: string, values: readonly unknown[]) => trx.executeQuery(CompiledQuery.raw(text, [...values]));
      await lockJobs({ query } as unknown as pg.Pool, workerId);
    });

  it('forgets a job whose transaction is rolled back', async () => {
    const failing = database.db.transaction().execute(async (trx) => {
      await graphileJobs.enqueue(trx, 'restart', appJob('ghost'));
      throw new Error('changed my mind');
    });
    await expect(failing).rejects.toThrow('changed my mind');
    expect(await countJobs(database.pool)).toBe(0);
  });

  it('runs a job again within seconds that has lost its connection to the database, however often', patience, async () => {
    let attempts = 0;
    const done = Promise.withResolvers<void>();
    const worker = await startWorker(database, {
      ...idleHandlers,
      restart: () => {
        attempts += 1;
        if (attempts < 6) return Promise.reject(Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' }));
        return Promise.resolve(done.resolve());
      },
    });
    await graphileJobs.enqueue(database.db, 'restart', appJob('x'));
    await done.promise;
    await worker.stop();
    expect(attempts).toBe(6);
  });

  it('takes over the jobs of a dead worker at once when it is the only worker', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('orphan'), { queue: 'q' });
    await lockJobs(database.pool, 'dead');
    const seen = Promise.withResolvers<string>();
    const worker = await startWorker(
      database,
      { ...idleHandlers, restart: ({ appId }) => Promise.resolve(seen.resolve(appId)) },
      true,
    );
    expect(await seen.promise).toBe('orphan');
    await worker.stop();
  });

  it('takes over what a dead worker gets after its death, its last statement being still under way, when it is the only one', async () => {
    const seen = Promise.withResolvers<string>();
    const worker = await startWorker(
      database,
      { ...idleHandlers, restart: ({ appId }) => Promise.resolve(seen.resolve(appId)) },
      true,
    );
    await database.pool.query(`insert into worker_leases values ('dead', now() + interval '1 hour')`);
    await enqueueLocked('dead', async (trx) => graphileJobs.enqueue(trx, 'restart', appJob('orphan')));
    expect(await seen.promise).toBe('orphan');
    await worker.stop();
  });

  it.each([true, false])(
    'runs what it took and never heard of, the connection being lost before the answer came (the only worker: %s)',
    async (soleWorker) => {
      const seen: string[] = [];
      const { pool, db } = database;
      const handlers: JobHandlers = {
        ...idleHandlers,
        restart: ({ appId }) => Promise.resolve(void seen.push(appId)),
      };
      const worker = await startGraphileWorker({ pool, db, handlers, log, slots, soleWorker, leaseSeconds: 0.5 });
      const readLeases = async () => (await pool.query<{ worker_id: string }>('select worker_id from worker_leases')).rows;
      await expect.poll(async () => (await readLeases()).length).toBe(2);
      const [{ worker_id: ours } = { worker_id: '' }] = await readLeases();
      await enqueueLocked(ours, (trx) => graphileJobs.enqueue(trx, 'restart', appJob('unheard of'), { queue: 'q' }));
      await graphileJobs.enqueue(db, 'restart', appJob('behind it'), { queue: 'q' });
      await expect.poll(() => seen, patience).toEqual(['unheard of', 'behind it']);
      await worker.stop();
    },
  );

  it('leaves nothing of a job that was replaced while the worker that ran it died', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('old'), { key: 'a' });
    await lockJobs(database.pool, 'dead');
    await graphileJobs.enqueue(database.db, 'restart', appJob('new'), { key: 'a' });
    const seen: string[] = [];
    const worker = await startWorker(
      database,
      { ...idleHandlers, restart: ({ appId }) => Promise.resolve(void seen.push(appId)) },
      true,
    );
    await expect.poll(() => countJobs(database.pool), { timeout: 20_000 }).toBe(0);
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
    const handlers = { ...idleHandlers, build };
    const worker = await startGraphileWorker({ pool, db, handlers, log, slots, soleWorker, leaseSeconds: 0.5 });
    await ended.promise;
    await worker.stop();
    expect(runs).toBe(1);
  });

  it('runs a job once that it has locked while all slots were busy for longer than any lease', async () => {
    const { pool, db } = database;
    const runs: string[] = [];
    const ended = Promise.withResolvers<void>();
    const restart = async ({ appId }: { appId: string }): Promise<void> => {
      runs.push(appId);
      // Long enough for the other to be locked, given back and locked again.
      if (appId === 'first') await new Promise((resolve) => setTimeout(resolve, 3000));
      else ended.resolve();
    };
    for (const name of ['first', 'second']) await graphileJobs.enqueue(db, 'restart', appJob(name));
    const worker = await startGraphileWorker({
      pool,
      db,
      handlers: { ...idleHandlers, restart },
      log,
      slots: { builds: 0, releases: 0, rollouts: 0, apps: 1, deletions: 0, repositories: 0, sources: 0, domains: 1 },
      soleWorker: false,
      leaseSeconds: 0.5,
    });
    await ended.promise;
    await expect.poll(() => countJobs(pool)).toBe(0);
    await worker.stop();
    expect(runs).toEqual(['first', 'second']);
  });

  it(
    'runs a job once that waits while its pools are started, though the search for dead workers takes long',
    patience,
    async () => {
      const { pool, db } = database;
      let runs = 0;
      const running = Promise.withResolvers<void>();
      const repack = async (): Promise<void> => {
        runs += 1;
        running.resolve();
        await new Promise((resolve) => setTimeout(resolve, 500));
      };
      let searches = 0;
      const slowDb = delayQueries(db, async (query) => {
        if (!query.includes('select distinct locked_by')) return;
        searches += 1;
        // The first is before any pool. The second begins when the first pool is there, and the second is about to be started.
        if (searches === 2) await Promise.race([running.promise, new Promise((resolve) => setTimeout(resolve, 2000))]);
      });
      await graphileJobs.enqueue(db, 'repack', { repositoryId: 'r' as RepositoryId });
      const handlers = { ...idleHandlers, repack };
      const worker = await startGraphileWorker({ pool, db: slowDb, handlers, log, slots, soleWorker: true });
      await expect.poll(() => countJobs(pool), patience).toBe(0);
      await worker.stop();
      expect(searches).toBeGreaterThan(1);
      expect(runs).toBe(1);
    },
  );

  it('takes over the jobs of a dead worker once their lease is over, and no job of a living one', async () => {
    await graphileJobs.enqueue(database.db, 'restart', appJob('of the dead'));
    await graphileJobs.enqueue(database.db, 'build', buildJob('of the living'));
    await database.pool.query(
      `insert into worker_leases values ('dead', now() - interval '1 minute'), ('living', now() + interval '1 minute')`,
    );
    await lockJobs(database.pool, 'dead', { task: 'restart', secondsAgo: 60 });
    await lockJobs(database.pool, 'living', { task: 'build', secondsAgo: 60 });
    const seen: string[] = [];
    const done = Promise.withResolvers<void>();
    const worker = await startWorker(database, {
      ...idleHandlers,
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

it('a worker outlives its database: the pool whose job ended meanwhile runs its jobs again, the other goes on, and both take new jobs', async () => {
  const server = await openTestPostgres();
  const { db, pool, close } = connectPostgres(server.url, () => undefined, 5);
  await migrate(db);
  await migrateJobs(pool, log);
  const runs: string[] = [];
  /** Long jobs that run, and need no database for that. */
  const running = new Set<string>();
  const runLong = async (name: string, signal: AbortSignal): Promise<void> => {
    runs.push(name);
    if (runs.filter((run) => run === name).length > 1) return;
    running.add(name);
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    running.delete(name);
    throw signal.reason as Error;
  };
  const handlers: JobHandlers = {
    ...idleHandlers,
    repack: (_, signal) => runLong('repack', signal),
    build: (_, signal) => runLong('build', signal),
    restart: async ({ appId }: { appId: string }) => {
      runs.push(appId);
      if (runs.filter((run) => run === appId).length > 1 || appId !== 'first') return;
      await server.server.stop();
      throw new Error('nobody can be told of this');
    },
  };
  const worker = await startGraphileWorker({ pool, db, handlers, log, slots, soleWorker: true, leaseSeconds: 2 });
  try {
    await graphileJobs.enqueue(db, 'build', buildJob('long'));
    await graphileJobs.enqueue(db, 'repack', { repositoryId: 'long' as RepositoryId });
    await expect.poll(() => running.size, patience).toBe(2);
    await graphileJobs.enqueue(db, 'restart', appJob('first'));
    await expect.poll(() => findPostmaster(join(server.directory, 'postgres', 'cluster')), patience).toBeUndefined();
    await startPostgres({ directory: join(server.directory, 'postgres'), settings: { fsync: 'off' }, log });
    await expect.poll(() => runs.toSorted(), patience).toEqual(['build', 'build', 'first', 'first', 'repack']);
    await graphileJobs.enqueue(db, 'restart', appJob('second'));
    await expect.poll(() => runs.at(-1), patience).toBe('second');
    expect(runs).toHaveLength(6);
    // Of the pool that had nothing to record: its job has gone on.
    expect([...running]).toEqual(['repack']);
  } finally {
    await worker.stop();
    await close();
    await (await startPostgres({ directory: join(server.directory, 'postgres'), log })).stop();
    await server.close();
  }
  // A database that is just starting makes graphile-worker wait for 3 s, then 4.5 s and so on.
}, 60_000);
