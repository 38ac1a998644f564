import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import { createLog } from '#shared/log.ts';
import { startPostgres } from './postgres-server.ts';
import { findPostmaster } from './postmaster.ts';
import { type SupervisedPostgres, supervisePostgres } from './supervise-postgres.ts';

let parent: string;
let directory: string;
let server: SupervisedPostgres;
const log = createLog('silent', () => undefined);
const settings = { fsync: 'off' };
const patience = { timeout: 25_000 };

beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'paas-supervise-postgres-'));
  directory = join(parent, 'postgres');
  server = await supervisePostgres({ directory, settings, log });
});
afterEach(async () => {
  await server.stop();
  // Of a test that left it running.
  await (await startPostgres({ directory, settings, log })).stop();
  await rm(parent, { recursive: true, force: true });
});

const pidOf = async () => (await findPostmaster(join(directory, 'cluster')))?.pid;

async function query(statement: string): Promise<unknown[]> {
  const client = new PostgresClient(server.url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

it('a server that is killed comes back at the same address with all that was committed, and stops when told', async () => {
  await query('create table survivors as select 7 as n');
  for (let kills = 0; kills < 2; kills++) {
    const pid = await pidOf();
    process.kill(pid ?? 0, 'SIGKILL');
    await expect.poll(() => query('select n from survivors').catch(() => []), patience).toEqual([{ n: 7 }]);
    expect(await pidOf()).not.toBe(pid);
  }
  await server.stop();
  expect(await pidOf()).toBeUndefined();
});

it('a server that is left runs on, unsupervised', async () => {
  const pid = await pidOf();
  await server.leave();
  expect(await pidOf()).toBe(pid);
});
