import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { StartError } from '#deploy/host/start-error.ts';
import { type Lifetime, startWithLifetime } from '#deploy/parts/lifetime.ts';
import { joinDatabase, migrateDatabase, openDatabase } from '#deploy/parts/open-database.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { createLog } from '#shared/log.ts';
import { parseSettings } from '#shared/settings/settings.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
let directory: string;
beforeEach(async () => {
  database = await createTestDatabase();
  directory = await mkdtemp(join(tmpdir(), 'paas-owner-'));
});
afterEach(async () => {
  await database.close();
  await rm(directory, { recursive: true, force: true });
});

const optionsFor = (dataDir: string, env: Record<string, string> = {}): StartOptions => ({
  settings: parseSettings({ PAAS_DATABASE_URL: database.url, ...env }),
  dataDir,
  hostEnv: {},
  log: createLog('silent', () => undefined),
  report: () => undefined,
});

/** Opens the database as a start does, and ends that start. */
async function start(open: (lifetime: Lifetime) => Promise<unknown>): Promise<void> {
  let started: Lifetime | undefined;
  await startWithLifetime((lifetime) => {
    started = lifetime;
    return open(lifetime);
  });
  await started?.end('stop');
}

const objectStore = {
  PAAS_OBJECT_STORE_URL: 'http://127.0.0.1:1/bucket',
  PAAS_OBJECT_STORE_ACCESS_KEY_ID: 'x',
  PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: 'y',
};

const own = (dataDir: string): Promise<void> => start((lifetime) => openDatabase(lifetime, optionsFor(dataDir)));

async function newDirectory(): Promise<string> {
  return mkdtemp(join(directory, 'data-'));
}

it('a second data directory on the database is refused before anything changes, with the name of the first', async () => {
  const [first, second] = [await newDirectory(), await newDirectory()];
  await own(first);
  // A newer version must not migrate the database of another platform.
  await sql`delete from kysely_migration where name = '0028-database-owner'`.execute(database.db);
  const refused = own(second);
  await expect(refused).rejects.toThrow(StartError);
  await expect(refused).rejects.toThrow(`PAAS_DATABASE_URL: this database belongs to the data directory ${first} on `);
  await expect(refused).rejects.toThrow(`and PAAS_DATA_DIR is ${second}.`);
  const migrated = await sql<{ name: string }>`select name from kysely_migration where name = '0028-database-owner'`.execute(
    database.db,
  );
  expect(migrated.rows).toEqual([]);
});

it('the same data directory starts again, also after it was moved', async () => {
  const [first, second] = [await newDirectory(), await newDirectory()];
  await own(first);
  await own(first);
  const moved = join(directory, 'moved');
  await cp(first, moved, { recursive: true });
  await own(moved);
  await expect(own(second)).rejects.toThrow(`belongs to the data directory ${moved} on `);
});

it('of two data directories that start at once on a new database one is refused', async () => {
  const outcomes = await Promise.allSettled([await newDirectory(), await newDirectory()].map(own));
  expect(outcomes.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
});

it('the message says how to replace a directory that is lost', async () => {
  const [first, second] = [await newDirectory(), await newDirectory()];
  await own(first);
  const { message } = (await own(second).catch((error: unknown) => error)) as Error;
  const [, id = '', path = ''] = /write (\S+) to (\S+)\.$/.exec(message) ?? [];
  await cp(join(first, 'platform-id'), path);
  await own(second);
  expect(id).toMatch(/^[0-9a-f-]{36}$/);
});

it('processes of the platform join on its data directory only; with an object store on any', async () => {
  const [first, second] = [await newDirectory(), await newDirectory()];
  await own(first);
  const joinOn = (dataDir: string, env: Record<string, string> = {}): Promise<void> =>
    start((lifetime) => joinDatabase(lifetime, optionsFor(dataDir, env), new AbortController().signal));
  await joinOn(first);
  await expect(joinOn(second)).rejects.toThrow(StartError);
  await joinOn(second, objectStore);
});

it('a worker of a cluster claims it for the repositories in its data directory; with an object store any number share it', async () => {
  const cluster = { PAAS_PLATFORM: 'kubernetes', PAAS_KUBERNETES_REPOSITORY: 'registry.example.com/paas' };
  const [first, second] = [await newDirectory(), await newDirectory()];
  const work = (dataDir: string, env: Record<string, string>): Promise<void> =>
    start((lifetime) => openDatabase(lifetime, optionsFor(dataDir, { ...cluster, ...env })));
  await work(first, objectStore);
  await work(second, objectStore);
  await work(first, {});
  await start((lifetime) => joinDatabase(lifetime, optionsFor(first, cluster), AbortSignal.timeout(10_000)));
  await expect(work(second, {})).rejects.toThrow(`belongs to the data directory ${first} on `);
});

it('a process that joins a new database waits for a worker to claim it', async () => {
  const first = await newDirectory();
  const stopping = new AbortController();
  const lines: string[] = [];
  const options = {
    ...optionsFor(first),
    report: (line: string) => {
      lines.push(line);
      stopping.abort();
    },
  };
  const joining = start((lifetime) => joinDatabase(lifetime, options, stopping.signal));
  await expect(joining).rejects.toThrow('Stopped before the start was complete.');
  expect(lines).toEqual(['-----> Waiting for a worker to use this database for the first time.']);
});

it('a migration before a start leaves the database free for any data directory', async () => {
  await start((lifetime) => migrateDatabase(lifetime, optionsFor(directory), database.url));
  await expect(own(await newDirectory())).resolves.toBeUndefined();
});

it('a migration from elsewhere leaves the database to its data directory', async () => {
  const first = await newDirectory();
  await own(first);
  await start((lifetime) => migrateDatabase(lifetime, optionsFor(join(directory, 'elsewhere')), database.url));
  await expect(own(first)).resolves.toBeUndefined();
});
