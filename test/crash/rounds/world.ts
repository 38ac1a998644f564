import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Principal } from '#shared/core/accounts/principals.ts';
import type { Db } from '#shared/database/db.ts';
import { migrate } from '#shared/database/migrate.ts';
import { connectPostgres } from '#shared/database/postgres.ts';
import type { AppId } from '#shared/ids.ts';
import { migrateJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { createLog } from '#shared/log.ts';
import { type CrashHost, spawnCrashHost } from '#test/support/crash/crash-host-process.ts';
import { packCommit, packCommits, pushPack } from '#test/support/crash/push-client.ts';
import { onServer } from '#test/support/database/on-server.ts';
import { writeEvidence } from './evidence.ts';

/** A database and a directory that outlive every control plane that is started on them, and what is known of them. */
export interface World {
  readonly db: Db;
  readonly directory: string;
  readonly apps: Readonly<Record<Area, readonly WorldApp[]>>;
  /** The next control plane, started and taking work. */
  startHost(): Promise<CrashHost>;
  /** Leaves what there is to look at in `directory`, also after the world's end. */
  keep(facts: object): Promise<void>;
  close(): Promise<void>;
}

export const areas = ['push', 'race', 'refs', 'atomic', 'build', 'rollout', 'add-on', 'webhook'] as const;
/** What is done to an app: of pushes to the deployed branch, two of them at once, to other refs, or to both together. */
export type Area = (typeof areas)[number];

export interface WorldApp {
  readonly id: AppId;
  readonly name: string;
  /** Where main is as far as is known. */
  tip: string | undefined;
  /** Commits that a git host is going to tell of, oldest first; they are in the repository under a tag already. */
  readonly upcoming: string[];
  /** Of the delivery that is not acknowledged yet. */
  deliveryId: string | undefined;
}

const appsOfArea: Record<Area, number> = {
  push: 8,
  race: 2,
  refs: 4,
  atomic: 2,
  build: 3,
  rollout: 3,
  'add-on': 3,
  webhook: 3,
};

export interface WorldOptions {
  /** Superuser's URL of a PostgreSQL. */
  serverUrl: string;
  /** What a control plane is given instead of the database's own address, as that of a proxy. */
  reachBy(url: URL): URL;
  /** How many the git host is going to make. */
  deliveries: number;
  /** One app of each area. */
  few: boolean;
}

export async function createWorld({ serverUrl, reachBy, deliveries, few }: WorldOptions): Promise<World> {
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
  const hostStart = { databaseUrl: reachBy(url).href, directory, secretKey };

  const first = await spawnCrashHost(directory);
  await first.start({ ...hostStart, owner: undefined });
  const owner = await first.call<Principal>({ kind: 'sign up' });
  await first.leave();

  let standby = spawnCrashHost(directory);
  const startHost = async (): Promise<CrashHost> => {
    const host = await standby;
    standby = spawnCrashHost(directory);
    await host.start({ ...hostStart, owner });
    return host;
  };
  const host = await startHost();
  const apps: Record<Area, WorldApp[]> = {
    push: [],
    race: [],
    refs: [],
    atomic: [],
    build: [],
    rollout: [],
    'add-on': [],
    webhook: [],
  };
  for (const area of areas)
    apps[area] = await Promise.all(
      Array.from({ length: few ? 1 : appsOfArea[area] }, () => createWorldApp(host, area, deliveries)),
    );
  await host.kill();

  let kept = false;
  return {
    db,
    directory,
    apps,
    startHost,
    async keep(facts) {
      kept = true;
      await writeEvidence(db, directory, facts);
    },
    async close() {
      await (await standby).kill();
      await close();
      await onServer(serverUrl, `drop database ${name} with (force)`);
      if (!kept) await rm(directory, { recursive: true, force: true });
    },
  };
}

/** With a first release, but for those that are pushed to: theirs may come as it likes. */
async function createWorldApp(host: CrashHost, area: Area, deliveries: number): Promise<WorldApp> {
  const gitUrl = area === 'webhook' ? `https://git.example.com/${crypto.randomUUID()}` : undefined;
  const { id, name } = await host.call<WorldApp>({ kind: 'create app', ...(gitUrl === undefined ? {} : { gitUrl }) });
  const app: WorldApp = { id, name, tip: undefined, upcoming: [], deliveryId: undefined };
  if (['push', 'race', 'refs', 'atomic'].includes(area)) return app;
  const push = async (ref: string, to: string | undefined, pack: Buffer): Promise<void> => {
    const told = await pushPack(host.socketPath, id, [{ name: ref, from: undefined, to }], { pack });
    if (told?.get(ref) !== 'ok') throw new Error(`The world cannot be made: ${told?.get(ref) ?? 'the host is gone'}`);
  };
  const { oid, pack } = packCommit('first', undefined);
  await push('refs/heads/main', oid, pack);
  app.tip = oid;
  if (area === 'webhook') {
    const { oids, pack: all } = packCommits(
      Array.from({ length: deliveries }, (_, count) => `delivery ${count}`),
      oid,
    );
    app.upcoming.push(...oids);
    await push('refs/tags/upcoming', oids.at(-1), all);
  }
  return app;
}
