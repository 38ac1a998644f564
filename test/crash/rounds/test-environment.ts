import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { Db } from '#shared/database/db.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import type { AppId } from '#shared/ids.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { createLog } from '#shared/log.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { type ControlPlaneProcess, spawnControlPlane } from '#test/support/crash/control-plane-process.ts';
import { packCommit, packCommits, pushPack } from '#test/support/crash/push-client.ts';
import { onServer } from '#test/support/database/on-server.ts';
import { dumpState } from './dump-state.ts';

/** A database and a directory that survive every control plane that is started on them, with apps to change. */
export interface TestEnvironment {
  readonly db: Db;
  readonly directory: string;
  readonly apps: Readonly<Record<OperationKind, readonly TestApp[]>>;
  /** Builds of apps that were purged: their starts stay counted. */
  purgedBuilds: number;
  /** Starts the next control plane. It accepts requests and runs jobs when the promise resolves. */
  startControlPlane(): Promise<ControlPlaneProcess>;
  /** Writes the state into `directory`, which `close` does not remove then. */
  keep(facts: object): Promise<void>;
  close(): Promise<void>;
}

/** Those of pushes come first. */
export const operationKinds = [
  'push',
  'race',
  'detach',
  'preview',
  'refs',
  'atomic',
  'build',
  'rollout',
  'add-on',
  'webhook',
] as const;
/**
 * Of pushes: to the deployed branch, two of them at the same time, two that do not wait, to another branch, to other refs, or to
 * the branch and other refs with `--atomic`.
 */
export type OperationKind = (typeof operationKinds)[number];

export interface TestApp {
  readonly id: AppId;
  readonly name: string;
  /** The object id of main as far as is known. */
  tip: string | undefined;
  /** Commits that a git host is going to deliver, oldest first; a tag makes them known to the repository already. */
  readonly upcoming: string[];
  /** Id of the delivery that is not acknowledged yet. */
  deliveryId: string | undefined;
}

const appsPerKind: Record<OperationKind, number> = {
  push: 8,
  race: 2,
  detach: 2,
  preview: 2,
  refs: 4,
  atomic: 2,
  build: 3,
  rollout: 3,
  'add-on': 3,
  webhook: 3,
};

export interface TestEnvironmentOptions {
  /** Superuser's URL of a PostgreSQL. */
  serverUrl: string;
  /** The address that a control plane is given instead of the database's own, as that of a proxy. */
  toProxyUrl(url: URL): URL;
  /** How many pushes the git host is going to deliver. */
  deliveries: number;
  /** One app for each kind of operation. */
  oneAppPerKind: boolean;
}

export async function createTestEnvironment({
  serverUrl,
  toProxyUrl,
  deliveries,
  oneAppPerKind,
}: TestEnvironmentOptions): Promise<TestEnvironment> {
  const name = `paas_crash_${crypto.randomUUID().replaceAll('-', '')}`;
  await onServer(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = name;
  const { db, pool, close } = connectPostgres(url.href, () => undefined, 3);
  await migrate(db);
  await migrateJobs(
    pool,
    createLog('silent', () => undefined),
  );
  const directory = await mkdtemp(join(tmpdir(), 'paas-crash-'));
  const secretKey = crypto.getRandomValues(new Uint8Array(32)).toBase64();
  const start = { databaseUrl: toProxyUrl(url).href, directory, secretKey };

  const first = await spawnControlPlane(directory);
  await first.start({ ...start, owner: undefined });
  const owner = await first.call<Principal>({ kind: 'sign up' });
  await first.stop();

  let standby = spawnControlPlane(directory);
  const startControlPlane = async (): Promise<ControlPlaneProcess> => {
    const controlPlane = await standby;
    standby = spawnControlPlane(directory);
    await controlPlane.start({ ...start, owner });
    return controlPlane;
  };
  const controlPlane = await startControlPlane();
  const apps: Record<OperationKind, TestApp[]> = {
    push: [],
    race: [],
    detach: [],
    preview: [],
    refs: [],
    atomic: [],
    build: [],
    rollout: [],
    'add-on': [],
    webhook: [],
  };
  for (const kind of operationKinds)
    apps[kind] = await Promise.all(
      Array.from({ length: oneAppPerKind ? 1 : appsPerKind[kind] }, () => createTestApp(controlPlane, kind, deliveries)),
    );
  await controlPlane.kill();

  let kept = false;
  return {
    db,
    directory,
    apps,
    purgedBuilds: 0,
    startControlPlane,
    async keep(facts) {
      kept = true;
      await dumpState(db, directory, facts);
    },
    async close() {
      await (await standby).kill();
      await close();
      await onServer(serverUrl, `drop database ${name} with (force)`);
      if (!kept) await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Creates an app, with a first release unless its operations are pushes. */
async function createTestApp(controlPlane: ControlPlaneProcess, kind: OperationKind, deliveries: number): Promise<TestApp> {
  const gitUrl = kind === 'webhook' ? `https://git.example.com/${crypto.randomUUID()}` : undefined;
  const { id, name } = await controlPlane.call<TestApp>({ kind: 'create app', ...omitUndefined({ gitUrl }) });
  const app: TestApp = { id, name, tip: undefined, upcoming: [], deliveryId: undefined };
  if (['push', 'race', 'detach', 'refs', 'atomic'].includes(kind)) return app;
  const push = async (ref: string, to: string | undefined, pack: Buffer): Promise<void> => {
    const report = await pushPack(controlPlane.socketPath, id, [{ name: ref, from: undefined, to }], { pack });
    if (report?.get(ref) !== 'ok') throw new Error(`The first push failed: ${report?.get(ref) ?? 'the control plane has ended'}`);
  };
  const { oid, pack } = packCommit('first', undefined);
  await push('refs/heads/main', oid, pack);
  app.tip = oid;
  if (kind === 'webhook') {
    const { oids, pack: all } = packCommits(
      Array.from({ length: deliveries }, (_, count) => `delivery ${count}`),
      oid,
    );
    app.upcoming.push(...oids);
    await push('refs/tags/upcoming', oids.at(-1), all);
  }
  return app;
}
