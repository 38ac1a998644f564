import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import type { AddonKind } from './addon-kind.ts';
import { createTenantDatabases } from './tenant-databases.ts';

const mebibyte = 1024 * 1024;
const log = createLog('silent', () => undefined);

let directory: string;
let databases: AddonKind;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-sizes-'));
  databases = createTenantDatabases({
    directory: join(directory, 'postgres'),
    clock: systemClock,
    log,
    settings: { fsync: 'off' },
    databaseBytes: 20 * mebibyte,
  });
});
afterAll(async () => {
  await databases.stopAll();
  await removeTree(directory);
});

async function createDatabase(): Promise<string> {
  const password = crypto.getRandomValues(new Uint8Array(16)).toHex();
  const spec = {
    appId: newUuid<AppId>(),
    tenantId: newTenantId(),
    type: 'database',
    replicas: 1,
    memoryBytes: 1,
    connections: 5,
  } as const;
  return (await databases.ensure({ ...spec, password })).uri;
}

/** One session. @returns the message of what went wrong, or '' */
async function query(uri: string, ...statements: readonly string[]): Promise<string> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => undefined);
  try {
    await client.connect();
    for (const statement of statements) await client.query(statement);
    return '';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end().catch(() => undefined);
  }
}

const grow = (mebibytes: number): string =>
  `insert into kept select repeat(md5(random()::text), 250) from generate_series(1, ${mebibytes * 110})`;
const create = 'create table kept (value text); alter table kept alter value set storage external';
const writable = 'set default_transaction_read_only = off';
const patience = { timeout: 25_000 };

it('a database that is too large is read-only until its app has deleted enough, and the others are not', {
  timeout: 60_000,
}, async () => {
  const [large, small] = [await createDatabase(), await createDatabase()];
  expect(await query(small, create)).toBe('');
  expect(await query(large, create, grow(16))).toBe('');
  await expect.poll(() => query(large, grow(0)), patience).toContain('read-only transaction');
  expect(await query(small, grow(1))).toBe('');
  expect(await query(large, writable, 'truncate kept')).toBe('');
  await expect.poll(() => query(large, grow(1)), patience).toBe('');
});

it('a database that grows on is closed', { timeout: 60_000 }, async () => {
  const uri = await createDatabase();
  expect(await query(uri, create, grow(30))).toBe('');
  await expect.poll(() => query(uri, writable, grow(1)), patience).toContain('too many connections');
});
