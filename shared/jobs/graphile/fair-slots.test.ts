import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BuildId, DeployId, RepositoryId, TenantId } from '#shared/ids.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { startGraphileWorker, type WorkerSlots } from '#shared/jobs/graphile/graphile-worker.ts';
import { flagsOf } from '#shared/jobs/graphile/job-flags.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import type { JobHandlers, JobWorker } from '#shared/jobs/jobs.ts';
import { appJob, buildJob, idleHandlers } from '#shared/jobs/testing/idle-handlers.ts';
import { createLog } from '#shared/log.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

const log = createLog('silent', () => undefined);
const patience = { timeout: 25_000 };
const noSlots: WorkerSlots = {
  builds: 0,
  releases: 0,
  rollouts: 0,
  apps: 0,
  deletions: 0,
  repositories: 0,
  sources: 0,
  domains: 0,
};
const [greedy, honest, other] = ['greedy', 'honest', 'other'] as TenantId[] as [TenantId, TenantId, TenantId];

describe('slots of jobs', () => {
  let database: TestDatabase;
  let workers: JobWorker[];
  /** Names of jobs in the order of their starts. */
  let started: string[];
  /** Ends a running job. */
  let ends: Map<string, () => void>;
  beforeEach(async () => {
    database = await createTestDatabase();
    await migrateJobs(database.pool, log);
    [workers, started, ends] = [[], [], new Map()];
  });
  afterEach(async () => {
    for (const end of ends.values()) end();
    await Promise.all(workers.map((worker) => worker.stop()));
    await database.close();
  });

  const run = (name: string, signal: AbortSignal): Promise<void> => {
    started.push(name);
    return new Promise((resolve, reject) => {
      ends.set(name, resolve);
      if (signal.aborted) reject(signal.reason as Error);
      signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  };
  const handlers: JobHandlers = {
    ...idleHandlers,
    build: ({ buildId }, signal) => run(buildId, signal),
    deploy: ({ deployId }, signal) => run(deployId, signal),
    'deploy-after-command': ({ deployId }, signal) => run(deployId, signal),
    restart: ({ appId }, signal) => run(appId, signal),
    repack: ({ repositoryId }, signal) => run(repositoryId, signal),
    'purge-app': ({ appId }, signal) => run(appId, signal),
    'settle-domain': ({ appId }, signal) => run(appId, signal),
  };
  async function startWorker(slots: Partial<WorkerSlots>): Promise<void> {
    const { pool, db } = database;
    workers.push(await startGraphileWorker({ pool, db, handlers, log, slots: { ...noSlots, ...slots }, soleWorker: false }));
  }
  /** Each is a build of another app. */
  async function enqueueBuilds(tenant: TenantId, count: number): Promise<void> {
    await database.pool.query(
      `select graphile_worker.add_job('build', json_build_object('buildId', $1 || ' ' || number),
        queue_name => 'build:' || $1 || number, flags => $2) from generate_series(1, $3) number`,
      [tenant, flagsOf('builds', tenant), count],
    );
  }
  const countStarted = (tenant: TenantId): number => started.filter((name) => name.startsWith(tenant)).length;
  const expectStarted = (count: number) => expect.poll(() => started.length, patience).toBe(count);
  const end = (name: string | undefined): void => ends.get(name ?? '')?.();

  it.each([1, 5])('let a tenant wait for the end of one job of a tenant with 1,000 at most (slots: %i)', async (builds) => {
    await enqueueBuilds(greedy, 1000);
    await startWorker({ builds });
    await expectStarted(Math.ceil(builds / 2));
    end(started[0]);
    await expectStarted(Math.ceil(builds / 2) + 1);
    await enqueueBuilds(honest, 2);
    if (builds === 1) end(started.at(-1));
    await expect.poll(() => countStarted(honest), patience).toBeGreaterThan(0);
    expect(countStarted(greedy)).toBe(Math.ceil(builds / 2) + 1);
  });

  it('go to tenants in turn, whoever has the oldest jobs', async () => {
    for (const tenant of [greedy, honest, other]) await enqueueBuilds(tenant, 3);
    await startWorker({ builds: 1 });
    for (let count = 1; count <= 9; count += 1) {
      await expectStarted(count);
      end(started.at(-1));
    }
    for (const turn of [0, 3, 6]) {
      const tenants = started.slice(turn, turn + 3).map((name) => name.split(' ')[0]);
      expect(new Set(tenants)).toEqual(new Set([greedy, honest, other]));
    }
  });

  it('stay half free for others, in each worker process', async () => {
    await enqueueBuilds(greedy, 20);
    await startWorker({ builds: 4 });
    await startWorker({ builds: 4 });
    await expectStarted(4);
    await enqueueBuilds(honest, 4);
    await expectStarted(6);
    await enqueueBuilds(other, 4);
    await expectStarted(8);
    expect([honest, other].map(countStarted)).toEqual([2, 2]);
  });

  it('are not all taken by three tenants whose jobs never end', async () => {
    await startWorker({ builds: 8 });
    const accomplice = 'accomplice' as TenantId;
    for (const [tenant, total] of [
      [greedy, 4],
      [accomplice, 6],
      [other, 7],
    ] as const) {
      await enqueueBuilds(tenant, 20);
      await expectStarted(total);
    }
    await enqueueBuilds(honest, 1);
    await expectStarted(8);
    expect(countStarted(honest)).toBe(1);
  });

  it('of one kind are not taken by jobs of another', async () => {
    const enqueueOne = async (name: string): Promise<void> => {
      const options = { tenant: honest };
      await graphileJobs.enqueue(database.db, 'build', { buildId: `build ${name}` as BuildId }, options);
      await graphileJobs.enqueue(database.db, 'deploy', { deployId: `deploy ${name}` as DeployId }, options);
      const release = { deployId: `release ${name}` as DeployId };
      await graphileJobs.enqueue(database.db, 'deploy-after-command', release, options);
      await graphileJobs.enqueue(database.db, 'restart', appJob(`restart ${name}`), options);
      await graphileJobs.enqueue(database.db, 'repack', { repositoryId: `repack ${name}` as RepositoryId }, options);
      await graphileJobs.enqueue(database.db, 'purge-app', appJob(`purge ${name}`), options);
      await graphileJobs.enqueue(database.db, 'settle-domain', { ...appJob(`settle ${name}`), host: 'x' }, options);
    };
    await startWorker({ builds: 1, releases: 1, rollouts: 1, apps: 1, deletions: 1, repositories: 1, sources: 1, domains: 1 });
    const kinds = ['build', 'deploy', 'purge', 'release', 'repack', 'restart', 'settle'];
    for (const kind of kinds.slice(1)) ends.set(`${kind} 1`, () => undefined);
    for (let index = 1; index <= 5; index += 1)
      await graphileJobs.enqueue(database.db, 'build', buildJob(`build ${index}`), { tenant: greedy });
    await expectStarted(1);
    await enqueueOne('1');
    await expect.poll(() => started.toSorted(), patience).toEqual(kinds.map((kind) => `${kind} 1`));
    await enqueueOne('2');
    end('restart 1');
    await expectStarted(8);
    expect(started.at(-1)).toBe('restart 2');
  });

  it('go to jobs without a tenant too', async () => {
    await startWorker({ builds: 2 });
    await graphileJobs.enqueue(database.db, 'build', buildJob('one'));
    await graphileJobs.enqueue(database.db, 'build', buildJob('two'));
    await expectStarted(2);
  });
});
