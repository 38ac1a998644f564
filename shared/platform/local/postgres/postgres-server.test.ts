import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { PostgresClient } from '#shared/database/postgres-client.ts';
import { createLog } from '#shared/log.ts';
import { type PostgresServer, startPostgres } from './postgres-server.ts';
import { waitForEnd } from './postmaster.ts';

const log = createLog('silent', () => undefined);
const settings = { fsync: 'off' };

// One cluster for all: each test stops its servers and mends what it broke. mkdtemp gives a directory that nobody else may
// enter: as root, these tests run PostgreSQL behind bubblewrap's mounts.
let parent: string;
let directory: string;
const servers: PostgresServer[] = [];

beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'paas-postgres-server-'));
  directory = join(parent, 'postgres');
});

afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop();
});

afterAll(async () => {
  await rm(parent, { recursive: true, force: true });
});

async function start(): Promise<PostgresServer> {
  const server = await startPostgres({ directory, settings, log });
  servers.push(server);
  return server;
}

async function query(url: string, statement: string): Promise<unknown[]> {
  const client = new PostgresClient(url);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows;
  } finally {
    await client.end();
  }
}

test('what was committed is there after a stop and a start, at the same address', async () => {
  const first = await start();
  await query(first.url, 'create table kept_over_stop as select 7 as n');
  await first.stop();
  const second = await start();
  expect(second.found).toBe(false);
  expect(second.url).toBe(first.url);
  expect(await query(second.url, 'select n from kept_over_stop')).toEqual([{ n: 7 }]);
});

test('text is UTF-8, compared by code point', async () => {
  const { url } = await start();
  const [row] = await query(
    url,
    `select lower('ÄÖ') as lower, 'Z' < 'a' as by_code_point, current_setting('server_encoding') as encoding`,
  );
  expect(row).toEqual({ lower: 'äö', by_code_point: true, encoding: 'UTF8' });
});

test('it never runs as root, and its password file is for its owner only', async () => {
  const { pid } = await start();
  const uid = /^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1];
  expect(uid).not.toBe('0');
  expect((await stat(join(directory, 'password'))).mode & 0o777).toBe(0o600);
});

test('a wrong password is refused', async () => {
  const { url } = await start();
  const wrong = new URL(url);
  wrong.password = 'wrong';
  await expect(query(wrong.href, 'select 1')).rejects.toThrow(/password authentication failed/);
});

test('it outlives a kill -9 of the process that started it, and the next start finds it', async () => {
  const source = `
    import { startPostgres } from ${JSON.stringify(fileURLToPath(new URL('./postgres-server.ts', import.meta.url)))};
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const server = await startPostgres({ directory: process.argv[1], settings: { fsync: 'off' }, log });
    console.log(server.pid);
    setInterval(() => {}, 1000);`;
  const starter = spawn(process.execPath, ['--input-type=module-typescript', '--eval', source, directory], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(starter.stdout, 'data')) as [Buffer];
  starter.kill('SIGKILL');
  await once(starter, 'close');

  const server = await start();
  expect(server.found).toBe(true);
  expect(server.pid).toBe(Number(line.toString()));
  expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
});

test('after a kill -9 of the server itself the next start recovers', async () => {
  const first = await start();
  await query(first.url, 'create table kept_over_kill as select 7 as n');
  process.kill(first.pid, 'SIGKILL');
  await waitForEnd(join(directory, 'cluster'), first.pid, 5000);
  const second = await start();
  expect(second.pid).not.toBe(first.pid);
  expect(await query(second.url, 'select n from kept_over_kill')).toEqual([{ n: 7 }]);
});

test('it listens on a unix socket only, which no other user reaches, and asks for the password by SCRAM', async () => {
  const { pid, url } = await start();
  const inodes = await Promise.all(
    (await readdir(`/proc/${pid}/fd`)).map((descriptor) => readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')),
  );
  const tcp = (await readFile('/proc/net/tcp', 'utf8')) + (await readFile('/proc/net/tcp6', 'utf8').catch(() => ''));
  const listening = tcp.split('\n').flatMap((line) => line.trim().split(/\s+/)[9] ?? []);
  expect(listening.filter((inode) => inodes.includes(`socket:[${inode}]`))).toEqual([]);

  const { uid, mode } = await stat(join(directory, 'socket'));
  expect(mode & 0o777).toBe(0o700);
  expect(String(uid)).toBe(/^Uid:\s+(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);
  const rules = await query(url, 'select distinct auth_method from pg_hba_file_rules');
  expect(rules).toEqual([{ auth_method: 'scram-sha-256' }]);
});

test('a server that a version with TCP only has left running is restarted with a socket', async () => {
  const first = await start();
  await query(first.url, 'create table kept_over_upgrade as select 7 as n');
  // What the socket is to clients: the older version had none.
  await rm(join(directory, 'socket'), { recursive: true });
  const second = await start();
  expect(second.found).toBe(false);
  expect(second.pid).not.toBe(first.pid);
  expect(await query(second.url, 'select n from kept_over_upgrade')).toEqual([{ n: 7 }]);
});

test('its directory may have a path that is longer than the address of a socket', async () => {
  const deep = join(parent, 'a'.repeat(90), 'b'.repeat(90), 'postgres');
  await mkdir(deep, { recursive: true });
  await rename(directory, deep);
  try {
    const server = await startPostgres({ directory: deep, settings, log });
    expect(await query(server.url, 'select 1 as one')).toEqual([{ one: 1 }]);
    await server.stop();
  } finally {
    await rename(deep, directory);
  }
});

test('with TCP it is reached by a port, which is replaced if somebody has taken it meanwhile', async () => {
  const first = await startPostgres({ directory, settings, log, tcp: true });
  const overTcp = new URL(first.url);
  overTcp.searchParams.delete('host');
  expect(overTcp.port).toBe(String(first.port));
  expect(await query(overTcp.href, 'select inet_server_addr() is not null as tcp')).toEqual([{ tcp: true }]);
  expect(await query(first.url, 'select inet_server_addr() is not null as tcp')).toEqual([{ tcp: false }]);
  await first.stop();
  const squatter = createServer().listen(first.port, '127.0.0.1');
  await once(squatter, 'listening');
  try {
    const second = await startPostgres({ directory, settings, log, tcp: true });
    servers.push(second);
    expect(second.port).not.toBe(first.port);
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  } finally {
    squatter.close();
  }
});

test('a creation that was cut off leaves nothing in the way of the next', async () => {
  await mkdir(join(directory, 'creating', 'cluster'), { recursive: true });
  await rename(join(directory, 'cluster'), join(directory, 'whole'));
  expect(await query((await start()).url, 'select 1 as one')).toEqual([{ one: 1 }]);
  expect(await readdir(directory)).not.toContain('creating');
});

test('a cluster of another version is one line that says so', async () => {
  await (await start()).stop();
  await writeFile(join(directory, 'cluster', 'PG_VERSION'), '17\n');
  await expect(start()).rejects.toThrow(/was made by PostgreSQL 17 and this is 18: dump it/);
  await writeFile(join(directory, 'cluster', 'PG_VERSION'), '18\n');
});

test('a directory that is no cluster is one line that says so', async () => {
  await (await start()).stop();
  await rename(join(directory, 'cluster', 'PG_VERSION'), join(directory, 'PG_VERSION'));
  await expect(start()).rejects.toThrow(/is not a PostgreSQL cluster .*move it away/);
  await rename(join(directory, 'PG_VERSION'), join(directory, 'cluster', 'PG_VERSION'));
});

test('a server that cannot start says what PostgreSQL said', async () => {
  await expect(startPostgres({ directory, settings: { ...settings, shared_buffers: 'plenty' }, log })).rejects.toThrow(
    /does not start: invalid value for parameter "shared_buffers": "plenty"\. See .*postgres\.log\./,
  );
});

test('stopping ends open sessions, and again is harmless', async () => {
  const server = await start();
  const client = new PostgresClient(server.url);
  client.on('error', () => undefined);
  await client.connect();
  const ended = new Promise<void>((resolve) => client.on('end', () => resolve()));
  await server.stop();
  await ended;
  await server.stop();
  // Gone for good once the kernel has told its parent, which may take a moment.
  const isThere = (): Promise<boolean> =>
    readFile(`/proc/${server.pid}/status`).then(
      () => true,
      () => false,
    );
  await expect.poll(isThere).toBe(false);
});

test.runIf(process.getuid?.() === 0)(
  'a cluster that ran as another user before runs as that of its use, and follows no links',
  async () => {
    await (await startPostgres({ directory, settings, log })).stop();
    const elsewhere = join(parent, 'elsewhere');
    await writeFile(elsewhere, '');
    await symlink(elsewhere, join(directory, 'cluster/link'));
    const server = await startPostgres({ directory, settings, log, use: 'apps' });
    servers.push(server);
    const owners = await Promise.all(
      [`/proc/${server.pid}`, join(directory, 'cluster/base')].map(async (path) => (await stat(path)).uid),
    );
    expect(new Set(owners).size).toBe(1);
    expect(owners[0]).not.toBe(0);
    expect((await stat(elsewhere)).uid).toBe(0);
    await rm(join(directory, 'cluster/link'));
    const client = new PostgresClient(server.url);
    await client.connect();
    expect((await client.query('select 1')).rowCount).toBe(1);
    await client.end();
  },
);
