import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import { oomScoreAdjustment } from '#shared/platform/local/sandbox/sandbox.ts';
import type { AddonKind } from './addon-kind.ts';
import { createTenantDatabases } from './tenant-databases.ts';

const log = createLog('silent', () => undefined);
const connections = 10;

let directory: string;
let databases: AddonKind;
/** Addresses of the databases of two apps. */
let attacker: string;
let victim: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-hostile-'));
  databases = createTenantDatabases({
    directory: join(directory, 'postgres'),
    clock: systemClock,
    log,
    settings: { fsync: 'off' },
    sharedResources: { transactionSeconds: 3600, locks: 2000, notificationShare: 0.25 },
  });
  attacker = await createDatabase();
  victim = await createDatabase();
  expect(await query(victim, 'create table secret as select 1')).toBe('');
}, 60_000);
afterAll(async () => {
  await databases.stopAll();
  await removeTree(directory);
});

async function createDatabase(): Promise<string> {
  const password = crypto.getRandomValues(new Uint8Array(16)).toHex();
  const spec = { appId: newUuid<AppId>(), tenantId: newTenantId(), type: 'database', replicas: 1, memoryBytes: 1 } as const;
  return (await databases.ensure({ ...spec, connections, password })).uri;
}

async function openSession(uri: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: uri });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** One session. @returns the message of what went wrong, or '' */
async function query(uri: string, ...statements: readonly string[]): Promise<string> {
  const client = await openSession(uri).catch((error: unknown) => error as Error);
  if (client instanceof Error) return client.message;
  try {
    for (const statement of statements) await client.query(statement);
    return '';
  } catch (error) {
    return (error as Error).message;
  } finally {
    await client.end().catch(() => undefined);
  }
}

function changed(uri: string, part: 'username' | 'pathname', value: string): string {
  const url = new URL(uri);
  url[part] = value;
  return url.href;
}

describe("an app's role in the server of all databases", () => {
  it.each([
    ["another app's database", () => changed(attacker, 'pathname', new URL(victim).pathname)],
    ['the database of the platform', () => changed(attacker, 'pathname', '/postgres')],
    ['the template of all databases', () => changed(attacker, 'pathname', '/template1')],
    ["another app's role", () => changed(attacker, 'username', new URL(victim).username)],
    ['the superuser', () => changed(attacker, 'username', 'paas')],
  ])('does not enter %s', async (_, uri) => {
    expect(await query(uri())).toMatch(/permission denied for database|password authentication failed/);
  });

  it.each([
    ['read files', "select pg_read_file('/etc/passwd')"],
    ['list directories', "select pg_ls_dir('/')"],
    ['read files by COPY', "create table files (line text); copy files from '/etc/passwd'"],
    ['write files by COPY', "copy (select 1) to '/tmp/paas-copied'"],
    ['run programs by COPY', "copy (select 1) to program 'id'"],
    ['read files as large objects', "select lo_import('/etc/passwd')"],
    ['write large objects to files', "select lo_export(lo_from_bytea(0, 'x'), '/tmp/paas-exported')"],
    ['load code', "create function run() returns int language c as 'libc', 'system'"],
    ['install code that is not trusted', 'create extension file_fdw'],
    ['reach other servers', 'create extension dblink'],
    ['become the superuser', 'set role paas'],
    ['become another app', () => `set role ${new URL(victim).username}`],
    ['create roles', 'create role friend superuser login'],
    ['rise itself', () => `alter role ${new URL(attacker).username} superuser`],
    ['raise its limit of connections', () => `alter role ${new URL(attacker).username} connection limit 500`],
    ['create databases', 'create database another'],
    ['change the server', "alter system set log_min_messages = 'debug5'"],
    ['load libraries', "load '/tmp/library'"],
    ['raise its limit of temporary files', "set temp_file_limit = '100GB'"],
    ['read passwords', 'select rolpassword from pg_authid'],
    ['copy what is written', "select pg_create_physical_replication_slot('slot')"],
    ['copy changes', "select pg_create_logical_replication_slot('slot', 'test_decoding')"],
    ["end the platform's sessions", "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'paas'"],
    ['give its database to all', () => `grant connect on database ${new URL(victim).username} to public`],
    ['prepare transactions that outlive it', "begin; create table left_over (a int); prepare transaction 'left'"],
  ])('cannot %s', async (_, statement) => {
    const text = typeof statement === 'string' ? statement : statement();
    const message = await query(attacker, text);
    // Sessions of the platform are short: there may be none to end.
    if (message === '' && text.includes('pg_terminate_backend')) return;
    expect(message).toMatch(
      /permission denied|must be|only roles|only superusers|not available|not exist|disabled|extension control file|access to library|cannot be changed|untrusted/i,
    );
  });

  it("does not see other apps' statements", async () => {
    const client = await openSession(victim);
    const spy = await openSession(attacker);
    try {
      const running = client.query("select pg_sleep(1), 'canary-51c2'");
      const { rows } = await spy.query<{ query: string }>('select query from pg_stat_activity where usename <> current_user');
      expect(JSON.stringify(rows)).not.toContain('canary-51c2');
      await running;
    } finally {
      await Promise.all([client.end(), spy.end()]);
    }
  });
});

describe('what one app takes of the server of all databases', () => {
  it('is at most a share of the memory for each session: a query that needs more fails, and nobody else notices', async () => {
    const witness = await openSession(victim);
    try {
      expect(await query(attacker, "select length(repeat('x', 1000000000))")).toContain('out of memory');
      expect(
        await query(
          attacker,
          "set work_mem = '2GB'",
          'set hash_mem_multiplier = 1000',
          'select count(*) from (select distinct md5(n::text) from generate_series(1, 4000000) n) a',
        ),
      ).toContain('out of memory');
      expect((await witness.query('select 1')).rowCount).toBe(1);
    } finally {
      await witness.end();
    }
  });

  it('ends before the platform when the machine runs out of memory', async () => {
    const client = await openSession(attacker);
    try {
      const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
      expect(Number(await readFile(`/proc/${rows[0]?.pid}/oom_score_adj`, 'utf8'))).toBe(oomScoreAdjustment);
    } finally {
      await client.end();
    }
  });

  it.runIf(process.getuid?.() === 0)(
    "does not begin with the files of the platform's own server",
    { timeout: 30_000 },
    async () => {
      const uidOfSession = async (): Promise<number> => {
        const client = await openSession(attacker);
        try {
          const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
          return (await stat(`/proc/${rows[0]?.pid}`)).uid;
        } finally {
          await client.end();
        }
      };
      const platformUid = 60_910;
      expect([0, platformUid]).not.toContain(await uidOfSession());
    },
  );

  it('is not all of the locks', { timeout: 30_000 }, async () => {
    const greedy = await openSession(attacker);
    await greedy.query('select pg_advisory_lock(n) from generate_series(1, 3000) n');
    await expect.poll(() => greedy.query('select 1').then(() => '', String), { timeout: 20_000 }).not.toBe('');
    expect(await query(victim, 'select pg_advisory_lock(1)')).toBe('');
  });

  it('is not all of the notifications', { timeout: 120_000 }, async () => {
    const deaf = await openSession(attacker);
    await deaf.query('listen news');
    await deaf.query('begin');
    await deaf.query('select 1');
    const sender = await openSession(attacker);
    const flood = `do $$ begin for n in 1..8000 loop perform pg_notify('news', repeat('x', 7900) || n); end loop; end $$`;
    await sender.query(flood).catch(() => undefined);
    await sender.query(flood).catch(() => undefined);
    await expect.poll(() => deaf.query('select 1').then(() => '', String), { timeout: 30_000 }).not.toBe('');
    await sender.end().catch(() => undefined);
    await expect.poll(() => query(victim, "listen own; notify own, 'text'"), { timeout: 60_000 }).toBe('');
  });

  it('is not all of the connections, with or without a password', { timeout: 30_000 }, async () => {
    const { port } = new URL(attacker);
    const sockets: Socket[] = [];
    const sessions: pg.Client[] = [];
    try {
      for (let count = 0; count < connections; count += 1) sessions.push(await openSession(attacker));
      expect(await query(attacker)).toMatch(/too many connections/);
      for (let count = 0; count < 200; count += 1)
        sockets.push(connect({ port: Number(port), host: '127.0.0.1' }).on('error', () => undefined));
      expect(await query(victim, 'select 1')).toBe('');
    } finally {
      for (const socket of sockets) socket.destroy();
      await Promise.all(sessions.map((session) => session.end()));
    }
  });

  it('is no room in the log of the server', async () => {
    const file = join(directory, 'postgres/postgres.log');
    const before = (await stat(file)).size;
    const client = await openSession(attacker);
    for (let count = 0; count < 200; count += 1) await client.query(`select 'canary-90ab' / ${count}`).catch(() => undefined);
    await client.query("do $$ begin for n in 1..1000 loop raise log 'canary-90ab %', n; end loop; end $$");
    await client.end();
    expect((await stat(file)).size - before).toBeLessThan(10_000);
    expect(await readFile(file, 'utf8')).not.toContain('canary-90ab');
  });

  it('is at most a share of the disk for temporary files', { timeout: 60_000 }, async () => {
    expect(
      await query(attacker, 'select count(*) from (select n, random() from generate_series(1, 20000000) n order by 2) a'),
    ).toContain('temporary file size exceeds');
    const left = await readdir(join(directory, 'postgres/cluster/base/pgsql_tmp')).catch(() => []);
    expect(left).toEqual([]);
  });
});
