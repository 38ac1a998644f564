import { mkdtemp, readdir, readFile, stat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import type { AddonSpec } from '#shared/platform/addons.ts';
import { type AddonClient, type AddonsFixture, describeAddons } from '#shared/platform/contract/addons.ts';
import { removeTree } from '#shared/platform/local/disk/trees.ts';
import { openSandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import { createLocalAddons, type LocalAddons } from './local-addons.ts';
import { askStore, kvstoreClient } from './testing/kvstore-client.ts';

const mebibyte = 1024 * 1024;

async function openAddons(dataDir: string): Promise<LocalAddons> {
  const path = process.env['PATH'] ?? '';
  const sandbox = await openSandbox({ dataDir, path });
  const log = createLog('error', (line) => process.stderr.write(`${line}\n`));
  const addons = createLocalAddons({ dataDir, sandbox, networks: undefined, path, clock: systemClock, log });
  await addons.adopt();
  return addons;
}

const makeDataDir = (): Promise<string> => mkdtemp(join(tmpdir(), 'paas-addons-'));

async function openFixture(client: AddonClient): Promise<AddonsFixture> {
  const dataDir = await makeDataDir();
  const addons = await openAddons(dataDir);
  return {
    addons,
    client,
    async stop() {
      await addons.stopAll();
      await removeTree(dataDir);
    },
  };
}

async function onDatabase<Result>(uri: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  // pg does not close a connection for which it has no password.
  const socket = new Socket();
  const client = new pg.Client({ connectionString: uri, stream: () => socket });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
    socket.destroy();
  }
}

const databaseClient: AddonClient = {
  write: (uri, value) =>
    onDatabase(uri, async (client) => {
      await client.query('create table if not exists kept (value text)');
      await client.query('insert into kept values ($1)', [value]);
    }),
  read: (uri) =>
    onDatabase(uri, async (client) => {
      await client.query('create table if not exists kept (value text)');
      const { rows } = await client.query<{ value: string }>('select value from kept');
      return rows[0]?.value;
    }),
};

describeAddons('local', 'kvstore', () => openFixture(kvstoreClient));
describeAddons('local', 'database', () => openFixture(databaseClient));

describe('servers of add-ons on this machine', () => {
  let dataDir: string;
  let addons: LocalAddons;
  beforeAll(async () => {
    dataDir = await makeDataDir();
    addons = await openAddons(dataDir);
  });
  afterAll(async () => {
    await addons.stopAll();
    await removeTree(dataDir);
  });

  const specOf = (type: AddonSpec['type'], change: Partial<AddonSpec> = {}): AddonSpec => ({
    appId: newUuid<AppId>(),
    tenantId: newTenantId(),
    type,
    replicas: 1,
    memoryBytes: 64 * mebibyte,
    connections: 10,
    password: crypto.getRandomValues(new Uint8Array(16)).toHex(),
    ...change,
  });
  async function ensureReady(spec: AddonSpec): Promise<string> {
    const { uri } = await addons.ensureAddon(spec);
    await expect
      .poll(() => addons.readAddon(spec.appId, spec.type), { timeout: 20_000 })
      .toEqual({ ready: spec.replicas, desired: spec.replicas });
    return uri;
  }

  it('a store holds three quarters of its plan, evicts nothing, and refuses more', async () => {
    const uri = await ensureReady(specOf('kvstore'));
    const info = await askStore(uri, ['INFO', 'memory']);
    expect(info).toContain(`maxmemory:${48 * mebibyte}\r\n`);
    expect(info).toContain('maxmemory_policy:noeviction');
    const value = 'x'.repeat(mebibyte);
    const fill = async () => {
      for (let count = 0; count < 60; count += 1) await askStore(uri, ['SET', `key-${count}`, value]);
    };
    await expect(fill()).rejects.toThrow('OOM command not allowed');
    expect(await askStore(uri, ['GET', 'key-0'])).toBe(value);
  });

  it('a store with three replicas has three independent servers and one address', async () => {
    const spec = specOf('kvstore', { replicas: 3 });
    const uri = await ensureReady(spec);
    await kvstoreClient.write(uri, 'kept');
    const directory = join(dataDir, 'addons/kvstore', spec.appId);
    expect((await readdir(directory)).toSorted()).toEqual(['1', '2', '3']);
    const { port } = JSON.parse(await readFile(join(directory, '2/server.json'), 'utf8')) as { port: number };
    expect(await kvstoreClient.read(uri.replace(/:\d+$/, `:${port}`))).toBeUndefined();
    await ensureReady({ ...spec, replicas: 1 });
    expect(await readdir(directory)).toEqual(['1']);
    expect(await kvstoreClient.read(uri)).toBe('kept');
  });

  it('a store refuses administration by its app', async () => {
    const uri = await ensureReady(specOf('kvstore'));
    const forbidden = [
      ['CONFIG', 'SET', 'bind', '0.0.0.0'],
      ['CONFIG', 'GET', '*'],
      ['SHUTDOWN', 'NOSAVE'],
      ['ACL', 'LIST'],
      ['MODULE', 'LIST'],
      ['REPLICAOF', '127.0.0.1', '1'],
      ['DEBUG', 'SLEEP', '1'],
      ['SAVE'],
    ];
    for (const command of forbidden) await expect(askStore(uri, command)).rejects.toThrow(/NOPERM|not allowed/);
  });

  it('the password of a store is in no file, no argument and no environment', async () => {
    const spec = specOf('kvstore');
    await ensureReady(spec);
    const directory = join(dataDir, 'addons/kvstore', spec.appId, '1');
    for (const file of ['server.json', 'server.conf', 'server.log'])
      expect(await readFile(join(directory, file), 'utf8')).not.toContain(spec.password);
    expect((await stat(join(directory, 'server.conf'))).mode & 0o777).toBe(0o600);
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    for (const pid of pids) {
      for (const file of ['cmdline', 'environ'])
        expect((await readFile(`/proc/${pid}/${file}`, 'latin1').catch(() => '')).includes(spec.password)).toBe(false);
    }
  });

  it('a store that is killed is started again, at the same address and with the same password', async () => {
    const spec = specOf('kvstore');
    const uri = await ensureReady(spec);
    const before = await readPid(spec.appId);
    process.kill(before, 'SIGKILL');
    await expect.poll(() => readPid(spec.appId).catch(() => before), { timeout: 10_000 }).not.toBe(before);
    await expect.poll(() => kvstoreClient.read(uri).catch(() => 'not yet'), { timeout: 10_000 }).toBeUndefined();
  });

  it('survive the control plane, and are found again by the next one', async () => {
    const [store, database] = [specOf('kvstore'), specOf('database')];
    const [storeUri, databaseUri] = [await ensureReady(store), await ensureReady(database)];
    const pid = await readPid(store.appId);
    await kvstoreClient.write(storeUri, 'kept');
    await databaseClient.write(databaseUri, 'kept');
    await addons.detach();
    expect(await kvstoreClient.read(storeUri)).toBe('kept');
    expect(await databaseClient.read(databaseUri)).toBe('kept');
    addons = await openAddons(dataDir);
    expect(await ensureReady(store)).toBe(storeUri);
    expect(await ensureReady(database)).toBe(databaseUri);
    expect(await readPid(store.appId)).toBe(pid);
    expect(await kvstoreClient.read(storeUri)).toBe('kept');
  });

  it('start with their data after a clean stop, before any call for them', async () => {
    const [store, database] = [specOf('kvstore'), specOf('database')];
    const [storeUri, databaseUri] = [await ensureReady(store), await ensureReady(database)];
    await kvstoreClient.write(storeUri, 'kept');
    await databaseClient.write(databaseUri, 'kept');
    await addons.stopAll();
    await expect(kvstoreClient.read(storeUri)).rejects.toThrow(/./);
    await expect(databaseClient.read(databaseUri)).rejects.toThrow(/./);
    addons = await openAddons(dataDir);
    await expect.poll(() => kvstoreClient.read(storeUri).catch(() => 'not yet'), { timeout: 20_000 }).toBe('kept');
    await expect.poll(() => databaseClient.read(databaseUri).catch(() => 'not yet'), { timeout: 20_000 }).toBe('kept');
  });

  it("a database refuses other apps' roles, and its role has no right beyond it", async () => {
    const [one, other] = [specOf('database', { connections: 2 }), specOf('database')];
    const [uri, otherUri] = [await ensureReady(one), await ensureReady(other)];
    for (const name of [new URL(otherUri).pathname, '/postgres', '/template1']) {
      const foreign = Object.assign(new URL(uri), { pathname: name }).href;
      await expect(databaseClient.read(foreign)).rejects.toThrow('permission denied for database');
    }
    for (const statement of [
      'create role friend',
      'create database more',
      "copy kept from program 'id'",
      'alter system reset all',
    ])
      await expect(onDatabase(uri, (client) => client.query(statement))).rejects.toThrow(/permission denied|does not exist/);
    const clients = await Promise.all(
      [1, 2].map(async () => {
        const client = new pg.Client(uri);
        await client.connect();
        return client;
      }),
    );
    await expect(databaseClient.read(uri)).rejects.toThrow('too many connections');
    await Promise.all(clients.map((client) => client.end()));
  });

  it('the database server is started again when it is killed, and has all data', async () => {
    const uri = await ensureReady(specOf('database'));
    await databaseClient.write(uri, 'kept');
    const pid = Number((await readFile(join(dataDir, 'addons/postgres/cluster/postmaster.pid'), 'utf8')).split('\n')[0]);
    process.kill(pid, 'SIGKILL');
    await expect.poll(() => databaseClient.read(uri).catch(() => 'not yet'), { timeout: 20_000 }).toBe('kept');
  });

  async function readPid(appId: AppId): Promise<number> {
    const record = JSON.parse(await readFile(join(dataDir, 'addons/kvstore', appId, '1/server.json'), 'utf8')) as {
      program: { init: { pid: number } };
    };
    return record.program.init.pid;
  }
});
