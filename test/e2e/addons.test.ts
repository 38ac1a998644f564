import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPerson, type Person } from '#cli/testing/person.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';

interface AddonAnswer {
  addon_type: string;
  plan: string;
  status: string;
  config_var: string;
}
interface ReleaseAnswer {
  version: number;
  kind: string;
  status: string;
  current: boolean;
}

/** Keeps a word in each of its add-ons by the client that people use, and says what it found there. */
const files = {
  'package.json': JSON.stringify({
    name: 'keeper',
    version: '1.0.0',
    private: true,
    scripts: { start: 'node server.js' },
    dependencies: { pg: '8.23.1', '@redis/client': '^5.0.0' },
  }),
  'server.js': `const { createServer } = require('node:http');
const { createClient } = require('@redis/client');
const { Client } = require('pg');
const stores = {
  async kvstore(word) {
    const client = createClient({ url: process.env.KVSTORE_URL });
    client.on('error', () => {});
    await client.connect();
    if (word) await client.set('word', word);
    const found = await client.get('word');
    await client.close();
    return found;
  },
  async database(word) {
    const client = new Client(process.env.DATABASE_URL);
    await client.connect();
    await client.query('create table if not exists words (word text)');
    if (word) await client.query('insert into words values ($1)', [word]);
    const { rows } = await client.query('select word from words');
    await client.end();
    return rows[0]?.word ?? null;
  },
};
createServer(async (request, response) => {
  const [, name, word] = request.url.split('/');
  if (name === 'names') return response.end(Object.keys(process.env).filter((name) => name.endsWith('_URL')).sort().join(' '));
  if (!name) return response.end();
  const answer = await stores[name](word).catch((error) => 'failed: ' + error.message);
  response.end(String(answer));
}).listen(process.env.PORT);
process.on('SIGTERM', () => process.exit(0));
`,
};
/** In order, as one app goes through it: each test goes on where the one before ended. */
describe('add-ons of a pushed app', () => {
  let platform: RunningPlatform;
  let user: User;
  let copy: WorkingCopy;
  let person: Person;
  beforeAll(async () => {
    platform = await startPlatform({ env: { PAAS_CANARY_STEP_SECONDS: '0' } });
    user = await createUser(platform);
    const app = await user.createApp('keeper');
    copy = await user.createWorkingCopy(app.push_url, files);
    person = await createPerson({ PAAS_API_URL: platform.baseUrl, PAAS_TOKEN: user.token, PAAS_APP: 'keeper' });
  });
  afterAll(async () => {
    await person?.remove();
    await user?.remove();
    await removePlatform(platform);
  });

  const ask = async (path: string): Promise<string> => (await visit(platform, 'keeper', path)).body;
  const addons = () => user.api<AddonAnswer[]>('GET', '/v1/apps/keeper/addons');
  const releases = () => user.api<ReleaseAnswer[]>('GET', '/v1/apps/keeper/releases');
  async function untilReady(...types: string[]): Promise<void> {
    await expect
      .poll(async () => (await addons()).map(({ addon_type: type, status }) => `${type} ${status}`), { timeout: 30_000 })
      .toEqual(types.map((type) => `${type} Ready`));
  }
  /** The newest release, once all deploys are over. */
  async function untilSettled(): Promise<ReleaseAnswer | undefined> {
    const open = async () =>
      (await user.api<{ status: string }[]>('GET', '/v1/apps/keeper/deploys')).filter(({ status }) =>
        ['pending', 'rolling'].includes(status),
      ).length;
    await expect.poll(open, { timeout: 30_000 }).toBe(0);
    return (await releases())[0];
  }
  async function startAgain(): Promise<void> {
    const { dataDir, httpPort, httpsPort, sshPort } = platform;
    const ports = { http: httpPort, https: httpsPort, ssh: sshPort };
    platform = await startPlatform({ dataDir, ports, env: { PAAS_CANARY_STEP_SECONDS: '0' } });
  }

  it('created before the first push, a store is there for the first release', async () => {
    const made = await user.api<AddonAnswer>('POST', '/v1/apps/keeper/addons', { type: 'kvstore', plan: 'huge' });
    expect(made).toMatchObject({ addon_type: 'kvstore', plan: 'free', status: 'creating', config_var: 'KVSTORE_URL' });
    await untilReady('kvstore');
    expect(await releases()).toEqual([]);
    const pushed = await copy.push();
    expect(pushed.code).toBe(0);
    expect(await ask('/kvstore/kept-in-store')).toBe('kept-in-store');
  });

  it('created for a running app, a database comes by a release of its own', async () => {
    await user.api('POST', '/v1/addons/database', { app_id: 'keeper' });
    await untilReady('database', 'kvstore');
    expect(await untilSettled()).toMatchObject({ version: 2, kind: 'addon', status: 'succeeded', current: true });
    expect(await ask('/names')).toBe('DATABASE_URL KVSTORE_URL');
    expect(await ask('/database/kept-in-database')).toBe('kept-in-database');
    expect(await user.api('GET', '/v1/apps/keeper/config')).toEqual({});
  });

  it('kill -9 of the platform takes neither of them away, not even while it is gone', async () => {
    await platform.kill();
    expect([await ask('/kvstore'), await ask('/database')]).toEqual(['kept-in-store', 'kept-in-database']);
    await startAgain();
    await untilReady('database', 'kvstore');
    expect([await ask('/kvstore'), await ask('/database')]).toEqual(['kept-in-store', 'kept-in-database']);
    expect(await untilSettled()).toMatchObject({ version: 2 });
  });

  it('a clean stop and the next start keep what is in them', async () => {
    expect(await platform.stop()).toBe(0);
    await startAgain();
    await untilReady('database', 'kvstore');
    await expect.poll(() => ask('/kvstore'), { timeout: 20_000 }).toBe('kept-in-store');
    expect(await ask('/database')).toBe('kept-in-database');
  });

  it('a new password reaches the app by a release, and what is in the store stays', async () => {
    const before = (await user.api<{ uri: string }>('GET', '/v1/apps/keeper/addons/kvstore/credentials')).uri;
    await user.api('POST', '/v1/apps/keeper/addons/kvstore/rotate');
    await expect.poll(async () => (await releases())[0]?.version, { timeout: 30_000 }).toBe(3);
    await untilSettled();
    const after = (await user.api<{ uri: string }>('GET', '/v1/apps/keeper/addons/kvstore/credentials')).uri;
    expect(after).not.toBe(before);
    expect(await ask('/kvstore')).toBe('kept-in-store');
  });

  it('the command line lists them and talks to them, with no password in its arguments', async () => {
    const listed = (await person.paas(['addons'])).stdout.split('\n').map((line) => line.split(/ {2,}/).slice(0, 3));
    expect(listed).toEqual([['database:free', 'Ready', 'DATABASE_URL'], ['kvstore:free', 'Ready', 'KVSTORE_URL'], ['']]);
    expect((await person.paas(['kv:cli', 'get', 'word'])).stdout).toBe('kept-in-store\n');

    // Not every machine has psql; what it would connect by is the same for any client of PostgreSQL.
    const tools = join(person.home, 'tools');
    await mkdir(tools);
    const query = `const [, , flag, sql] = process.argv; const client = new (require('pg').Client)();
      if (flag !== '-c') throw new Error(flag);
      client.connect().then(() => client.query(sql)).then(({ rows }) => { console.log(rows[0].word); return client.end(); });`;
    await writeFile(join(tools, 'psql'), `#!${process.execPath}\n${query}`);
    await chmod(join(tools, 'psql'), 0o755);
    const env = {
      PATH: `${tools}${delimiter}${process.env['PATH']}`,
      NODE_PATH: new URL('../../node_modules', import.meta.url).pathname,
    };
    const asked = await person.paas(['pg:psql', '--', '-c', 'select word from words'], { env });
    expect(asked).toMatchObject({ code: 0, stdout: 'kept-in-database\n' });
  });

  it('deleting the app shuts them, and restoring it brings them back as they were', async () => {
    const { uri } = await user.api<{ uri: string }>('GET', '/v1/apps/keeper/addons/database/credentials');
    await user.api('DELETE', '/v1/apps/keeper');
    await expect.poll(async () => (await visit(platform, 'keeper')).status, { timeout: 20_000 }).toBe(404);
    await expect.poll(() => connects(uri), { timeout: 20_000 }).toBe(false);
    await user.api('POST', '/v1/apps/keeper/restore');
    await expect.poll(() => ask('/kvstore'), { timeout: 20_000 }).toBe('kept-in-store');
    expect(await ask('/database')).toBe('kept-in-database');
  });

  it('removed, an add-on is gone from the app and from the machine', async () => {
    const { uri } = await user.api<{ uri: string }>('GET', '/v1/apps/keeper/addons/database/credentials');
    await user.api('DELETE', '/v1/apps/keeper/addons/database');
    await untilReady('kvstore');
    expect(await untilSettled()).toMatchObject({ version: 4, kind: 'addon' });
    expect(await ask('/names')).toBe('KVSTORE_URL');
    await expect.poll(() => connects(uri), { timeout: 20_000 }).toBe(false);
    await expect
      .poll(async () => (await user.ask('POST', '/v1/addons/database', { app_id: 'keeper' })).status, { timeout: 20_000 })
      .toBe(201);
    await expect.poll(() => ask('/database'), { timeout: 30_000 }).toBe('null');
  });

  it('the command line makes one, gives it a new password, and removes it when it is sure', async () => {
    const stores = async () => (await person.paas(['addons'])).stdout.split('\n').filter((line) => line.startsWith('kvstore'));
    const destroyed = await person.paas(['addons:destroy', 'redis']);
    expect(destroyed.code).toBe(2);
    expect(destroyed.stderr).toContain('paas addons:destroy kvstore -a keeper -c keeper');
    expect(await stores()).toHaveLength(1);
    expect((await person.paas(['addons:destroy', 'redis', '-c', 'keeper'])).code).toBe(0);
    await expect.poll(stores, { timeout: 30_000 }).toEqual([]);

    await expect
      .poll(() => person.paas(['addons:create', 'redis:standard']), { timeout: 30_000 })
      .toMatchObject({ code: 0, stderr: 'Adding kvstore to keeper... started (standard), the URL will be in KVSTORE_URL\n' });
    await expect.poll(async () => (await stores())[0], { timeout: 30_000 }).toMatch(/^kvstore:standard {2}Ready/);
    const password = async () =>
      (await user.api<{ password: string }>('GET', '/v1/apps/keeper/addons/kvstore/credentials')).password;
    const before = await password();
    expect((await person.paas(['addons:rotate', 'kvstore'])).code).toBe(0);
    await expect.poll(password, { timeout: 30_000 }).not.toBe(before);
    expect((await person.paas(['addons:create', 'mongodb'])).stderr).toContain('Add-ons are kvstore and database.');
  });
});

async function connects(uri: string): Promise<boolean> {
  const client = new pg.Client(uri);
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end();
  }
}
