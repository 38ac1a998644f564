import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { createFakeRouter } from '#shared/routing/fake-router.ts';
import {
  makeDataDir,
  makeImage,
  openWorkloadFixture,
  removeDataDir,
  specOf,
  type WorkloadFixture,
} from '#test/support/workloads/workload-fixture.ts';
import { type Networks, openNetworks } from '../network/networks.ts';
import type { InstanceRecord } from './instance-store.ts';

/** Listens on `port`, an expression, and answers with its release and name. */
const server = (port: string, host = '0.0.0.0'): string =>
  `require('node:http').createServer((_, answer) => answer.end(process.env.PAAS_RELEASE + ' ' + process.env.PAAS_PROCESS)).listen(${port}, '${host}');
process.on('SIGTERM', () => process.exit(0));
`;

// Networks of their own need root; elsewhere such an app is refused, as `workloads.test.ts` and `supervision.test.ts` have it.
describe.skipIf(process.getuid?.() !== 0)('instances in networks of their own', () => {
  const appId = newUuid<AppId>();
  let dataDir: string;
  let networks: Networks;
  let router: ReturnType<typeof createFakeRouter>;
  let local: WorkloadFixture;

  const open = async (own = true): Promise<void> => {
    networks = await openNetworks({ dataDir, path: process.env['PATH'] ?? '', range: '10.213.0.0/16', allowedNetworks: [] });
    // An earlier version of the platform did not have networks for instances.
    const { instances: _instances, ...shared } = networks;
    const timings = { bootSeconds: 60, wrongPortSeconds: 1 };
    local = await openWorkloadFixture(dataDir, router, { networks: own ? networks : (shared as Networks), timings });
    await local.adopt();
  };
  async function roll(
    releaseVersion: number,
    script: string,
    change: Partial<WorkloadSpec> = {},
  ): Promise<RolloutFacts | undefined> {
    const imageUrl = await makeImage(dataDir, `v${releaseVersion}`, { 'server.js': script });
    let last: RolloutFacts | undefined;
    for await (const facts of rollOut(local.rollouts, specOf(appId, releaseVersion, imageUrl, change))) last = facts;
    return last;
  }
  const web = (quantity: number) => ({ processes: [{ type: 'web', command: '/opt/node server.js', quantity }] });
  /** What each instance with traffic answers. */
  async function visitAll(): Promise<string[]> {
    const backends = (await router.readRoute(appId))?.backends ?? [];
    const instances = backends.filter(({ weight }) => weight > 0).flatMap((backend) => backend.instances);
    // Not `fetch`, which refuses port 10080.
    const answers = instances.map(async ({ host, port }) => (await request(`http://${host}:${port}/`)).body.text());
    return (await Promise.all(answers)).toSorted();
  }
  async function readRecords(): Promise<InstanceRecord[]> {
    const directory = join(dataDir, 'workloads', appId, 'instances');
    const names = await readdir(directory);
    return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(directory, name), 'utf8')) as InstanceRecord));
  }
  async function readLog(): Promise<string> {
    const entries = await local.logs.readLogs(appId, { lines: 500 });
    return entries.map(({ message }) => message).join('\n');
  }

  beforeEach(async () => {
    dataDir = await makeDataDir();
    router = createFakeRouter();
    await open();
  });
  afterEach(async () => {
    await local.stopAll();
    await networks.deleteAll();
    await removeDataDir(dataDir);
  });

  it('are served on a port that is written in their code, several at a time, also while a release replaces another', async () => {
    expect(await roll(1, server('3000'), web(2))).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toEqual(['v1 web.1', 'v1 web.2']);
    expect(await readLog()).toMatch(/web\.1 listens on 3000 instead of PORT \(\d+\); it is served there/);
    expect(await roll(2, server('3000', '127.0.0.1'), web(2))).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toEqual(['v2 web.1', 'v2 web.2']);
    expect(await roll(3, server('process.env.PORT'), web(2))).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toEqual(['v3 web.1', 'v3 web.2']);
  });

  it('may listen on a port below 1024', async () => {
    expect(await roll(1, server('80'))).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toEqual(['v1 web.1']);
  });

  it('are served on PORT if they listen there, too', async () => {
    const both = `require('node:http').createServer((_, answer) => answer.end('other')).listen(3000, () => { ${server('process.env.PORT')} });`;
    expect(await roll(1, both)).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toEqual(['v1 web.1']);
    expect(await readLog()).not.toContain('instead of PORT');
  });

  it('are refused if they listen on several ports, or on one that does not speak HTTP', async () => {
    expect(await roll(1, server('7001') + server('7002'))).toMatchObject({
      phase: 'aborted',
      failure: { cause: expect.stringMatching(/listens on ports 700[12], 700[12], not on PORT/) },
    });
    const mute = "require('node:net').createServer((socket) => socket.end('220 ready')).listen(8080);";
    expect(await roll(2, mute)).toMatchObject({
      phase: 'aborted',
      failure: { cause: expect.stringContaining('listens on port 8080, not on PORT') },
    });
  });

  it('are taken over by the next control plane, and served where they listen', async () => {
    await roll(1, server('3000'), web(2));
    const before = await readRecords();
    await local.detach();
    await open();
    expect(await visitAll()).toEqual(['v1 web.1', 'v1 web.2']);
    expect(await readRecords()).toEqual(before);
    await local.workloads.restartWorkload(appId);
    expect(await visitAll()).toEqual(['v1 web.1', 'v1 web.2']);
  });

  it('of an earlier version of the platform, in the network of their app, are served until they are replaced', async () => {
    await local.detach();
    await open(false);
    await roll(1, server('process.env.PORT'));
    expect((await readRecords())[0]?.network).toBeUndefined();
    await local.detach();
    await open();
    expect(await visitAll()).toEqual(['v1 web.1']);
    await local.workloads.ensureWorkload({
      ...specOf(appId, 1, 'v1', web(2)),
    });
    expect(await visitAll()).toEqual(['v1 web.1', 'v1 web.2']);
    expect(new Set((await readRecords()).map(({ network }) => network))).toEqual(new Set([0, undefined]));
    await local.workloads.restartWorkload(appId);
    expect(await visitAll()).toEqual(['v1 web.1', 'v1 web.2']);
    expect((await readRecords()).every(({ network }) => network !== undefined)).toBe(true);
  });

  it('are 32 at once, of several process types, and leave no network behind when their app is deleted', async () => {
    const worker = { type: 'worker', command: '/opt/node server.js', quantity: 16 };
    const spec = { processes: [...web(16).processes, worker] };
    const namespaces = async (): Promise<string[]> => {
      const { namespace } = await networks.ensureNetwork(appId);
      return (await readdir('/run/netns')).filter((name) => name.startsWith(`${namespace}-`));
    };
    expect(await roll(1, server('8000'), spec)).toMatchObject({ phase: 'live' });
    expect(await visitAll()).toHaveLength(16);
    expect(await namespaces()).toHaveLength(32);
    await local.workloads.deleteWorkload(appId);
    expect((await namespaces()).length).toBeLessThanOrEqual(4);
    await networks.deleteNetwork(appId);
    expect(await namespaces()).toEqual([]);
  }, 120_000);
});
