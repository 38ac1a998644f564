import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Services } from '#deploy/control-plane.ts';
import { createJobHandlers, createServices } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { OpenedRepository } from '#shared/core/pushes/pushes.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { commitFiles, type GitOutcome, git, tryGit } from '#shared/git/testing/git-client.ts';
import { type GitTestServer, serveGit } from '#shared/git/testing/git-server.ts';
import type { AppId, RepositoryId } from '#shared/ids.ts';
import { startGraphileWorker, type WorkerSlots } from '#shared/jobs/graphile/graphile-worker.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import type { JobWorker } from '#shared/jobs/jobs.ts';
import { createLog } from '#shared/log.ts';
import type { ProgramScript } from '#shared/platform/fake/app-workload.ts';
import type { FakeBuildStep } from '#shared/platform/fake/builds.ts';
import { createFakePlatform, type FakePlatform } from '#shared/platform/fake/fake-platform.ts';
import type { Platform } from '#shared/platform/platform.ts';
import { createCoreContext } from '#test/support/core/core-context.ts';
import { refusePortsInTransactions } from '#test/support/core/refuse-ports-in-transactions.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';

export interface CoreFixture {
  readonly context: Context;
  readonly services: Services;
  readonly platform: FakePlatform;
  /** What the operator's log got. */
  readonly logged: readonly string[];
  /** What happens in the next builds; see `createFakeBuilds`. */
  buildStep: FakeBuildStep;
  /** What becomes of the next programs. */
  script: ProgramScript;
  /** A new user in a tenant of their own. */
  signUp(): Promise<Principal>;
  /** An app with a working copy whose `paas` pushes to it as `owner`. */
  createApp(owner: Principal): Promise<FixtureApp>;
  /** Runs jobs until `close` or `stopWorker`. */
  startWorker(): Promise<void>;
  stopWorker(): Promise<void>;
  /** The newest build of an app. */
  latestBuild(appId: AppId): Promise<BuildRow>;
  close(): Promise<void>;
}

export interface CoreFixtureOptions {
  /** Instead of a few of each kind. */
  workerSlots?: Partial<WorkerSlots>;
  /** Ports of a real platform, instead of the fakes. */
  ports?: Partial<Platform>;
}

export interface FixtureApp {
  readonly id: AppId;
  readonly name: string;
  readonly directory: string;
  /** Commits files on top of what is checked out; a Procfile with one web process is there from the first. */
  commit(files?: Readonly<Record<string, string>>): Promise<string>;
  /** `git push paas …`, with stock git; a push that is refused resolves too. */
  push(...args: readonly string[]): Promise<GitOutcome>;
  git(...args: readonly string[]): Promise<string>;
}

/**
 * The control plane on a real PostgreSQL, with the git storage it has in production; what builds and runs is in memory. A
 * port of the platform that is called inside a transaction throws, and fails `close`.
 */
export async function createCoreFixture({ workerSlots, ports }: CoreFixtureOptions = {}): Promise<CoreFixture> {
  const database = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'paas-core-'));
  const logged: string[] = [];
  const log = createLog('debug', (line) => logged.push(line));
  const clock = systemClock;
  const platform = createFakePlatform({
    clock,
    buildStep: (...step) => core.buildStep(...step),
    script: {
      boot: (...program) => core.script.boot?.(...program),
      run: async (...command) => (await core.script.run?.(...command)) ?? 0,
    },
  });
  const storage = createGitStorage({ db: database.db, directory: join(directory, 'git'), log });
  await migrateJobs(database.pool, log);
  const refused: string[] = [];
  const guarded = refusePortsInTransactions({ db: database.db, platform: { ...platform, ...ports } }, (port) =>
    refused.push(port),
  );
  const context = await createCoreContext({ ...guarded, log, clock, git: storage });
  const services = createServices(context);
  const opened = new Map<RepositoryId, OpenedRepository>();
  const server: GitTestServer = await serveGit(
    storage,
    (repositoryId) => {
      const access = opened.get(repositoryId);
      if (access === undefined) throw new Error('createApp opens the repository');
      return access.applyPush;
    },
    directory,
  );
  let worker: JobWorker | undefined;
  const core: CoreFixture = {
    context,
    services,
    platform,
    logged,
    buildStep: async () => undefined,
    script: {},
    async signUp() {
      const { user, tenant } = await services.accounts.signUp({
        email: `${crypto.randomUUID()}@example.com`,
        password: 'correct horse',
      });
      return services.accounts.resolvePrincipal({ userId: user.id, email: user.email, requestedTenantId: tenant.id });
    },
    async createApp(owner) {
      const { id, name } = await services.apps.createApp(owner, {});
      const access = await services.pushes.openRepository(owner, name, 'write');
      opened.set(access.repositoryId, access);
      const copy = join(directory, name);
      await git(directory, 'init', '-q', copy);
      await git(copy, 'remote', 'add', 'paas', server.url(access.repositoryId));
      let commits = 0;
      return {
        id,
        name,
        directory: copy,
        commit: (files = {}) => {
          commits += 1;
          const procfile = commits === 1 ? { Procfile: 'web: serve\nworker: work\n' } : {};
          return commitFiles(copy, { ...procfile, ...files }, `commit ${commits}`);
        },
        push: (...args) => tryGit(copy, ['-c', 'protocol.ext.allow=always', 'push', 'paas', ...args]),
        git: (...args) => git(copy, ...args),
      };
    },
    async startWorker() {
      const { db, pool } = database;
      const handlers = createJobHandlers(context);
      worker ??= await startGraphileWorker({
        pool,
        db,
        handlers,
        log,
        slots: {
          builds: 4,
          releases: 2,
          rollouts: 4,
          apps: 4,
          deletions: 1,
          repositories: 1,
          sources: 1,
          domains: 1,
          ...workerSlots,
        },
        soleWorker: true,
      });
    },
    async stopWorker() {
      await worker?.stop();
      worker = undefined;
    },
    latestBuild: (appId) =>
      context.db
        .selectFrom('builds')
        .selectAll()
        .where('app_id', '=', appId)
        .orderBy('created_at', 'desc')
        .limit(1)
        .executeTakeFirstOrThrow(),
    async close() {
      await core.stopWorker();
      await server.close();
      await storage.close();
      await database.close();
      await rm(directory, { recursive: true, force: true });
      if (refused.length > 0) throw new Error(`Called inside a database transaction: ${[...new Set(refused)].join(', ')}.`);
    },
  };
  return core;
}
