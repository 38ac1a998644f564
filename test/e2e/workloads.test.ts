import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import { startTestGateway, type TestGateway } from '#gateway/testing/start-test-gateway.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import type { AppLogEntry } from '#shared/platform/app-logs.ts';
import { isAlive, type ProcessIdentity } from '#shared/platform/local/processes/process-identity.ts';
import type { InstanceRecord } from '#shared/platform/local/workloads/instance-store.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import type { InstanceFacts } from '#shared/platform/workloads.ts';
import { holdLoad } from '#test/support/platform/load.ts';
import { startWorkloadProcess, type WorkloadProcess } from '#test/support/workloads/start-workload-process.ts';
import {
  makeDataDir,
  makeImage,
  openWorkloadFixture,
  removeDataDir,
  serverScript,
  specOf,
  webProcess,
} from '#test/support/workloads/workload-fixture.ts';

const stepSeconds = 2;

/** Real instances in real sandboxes behind a real gateway; the control plane is a process that the tests kill. */
describe('workloads behind the gateway', () => {
  let dataDir: string;
  let gateway: TestGateway;
  let host: WorkloadProcess;
  let image: string;
  let appId: AppId;
  beforeAll(async () => {
    dataDir = await makeDataDir();
    gateway = await startTestGateway({}, dataDir);
    image = await makeImage(dataDir, 'app', {
      'server.js': serverScript("let ticks = 0; setInterval(() => console.log('tick ' + ticks++), 20);"),
    });
  });
  afterAll(async () => {
    await gateway.stop();
    await removeDataDir(dataDir);
  });
  beforeEach(async () => {
    appId = newUuid();
    host = await startHost();
    await bringLive(1);
  });
  afterEach(async () => {
    await host.call({ op: 'stopAll' });
    await host.kill();
  });

  const startHost = (): Promise<WorkloadProcess> => startWorkloadProcess(dataDir, gatewayFiles(dataDir).controlSocket);
  const spec = (releaseVersion: number, quantity = 1) =>
    specOf(appId, releaseVersion, image, { processes: [{ ...webProcess, quantity }] });
  const bringLive = (releaseVersion: number): Promise<void> =>
    host.call({ op: 'rollOut', spec: spec(releaseVersion), stepSeconds });
  const instances = (): Promise<InstanceFacts[]> => host.call({ op: 'readInstances', appId });
  const answer = async (): Promise<string> => (await gateway.fetch(spec(1).hosts[0] ?? '')).body;
  const load = () => holdLoad({ httpPort: gateway.gateway.httpPort }, `app-${appId.slice(0, 8)}`);

  async function records(): Promise<InstanceRecord[]> {
    const directory = join(dataDir, 'workloads', appId, 'instances');
    const names = (await readdir(directory)).filter((name) => name.endsWith('.json'));
    return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(directory, name), 'utf8')) as InstanceRecord));
  }

  it('loses no request of visitors over rollouts, a restart, and scaling up and down', async () => {
    const visitors = load();
    await expect.poll(() => visitors.count(), { timeout: 10_000 }).toBeGreaterThan(50);
    await bringLive(2);
    await host.call({ op: 'ensureWorkload', spec: spec(2, 3) });
    await host.call({ op: 'restartWorkload', appId });
    await bringLive(3);
    await host.call({ op: 'ensureWorkload', spec: spec(3, 1) });
    // Each of the four visitors has asked after the last change: on a busy machine none may have before.
    const asked = visitors.count();
    await expect.poll(() => visitors.count(), { timeout: 10_000 }).toBeGreaterThan(asked + 8);
    const { outcomes, bodies } = await visitors.stop();
    expect(Object.keys(outcomes)).toEqual(['200']);
    expect(new Set(Object.keys(bodies).map((body) => body.split(' ')[0]))).toEqual(new Set(['v1', 'v2', 'v3']));
  });

  it('lets requests that take longer than the rollout finish on the old release', async () => {
    const appHost = spec(1).hosts[0] ?? '';
    const slow = gateway.fetch(appHost, { path: '/slow' });
    await expect.poll(async () => gateway.router.readInFlight((await records())[0]?.key ?? ''), { timeout: 10_000 }).toBe(1);
    await bringLive(2);
    expect((await gateway.fetch(appHost)).body).toMatch(/^v2 /);
    expect(await slow).toMatchObject({ status: 200, body: 'slow v1' });
  });

  it('finds the same processes again after kill -9 of the control plane, restarts none and misses no line of their output', async () => {
    const [before] = await records();
    const visitors = load();
    for (let round = 0; round < 3; round += 1) {
      await host.kill();
      const served = visitors.count();
      await expect.poll(() => visitors.count(), { timeout: 10_000 }).toBeGreaterThan(served + 50);
      host = await startHost();
    }
    expect(Object.keys((await visitors.stop()).outcomes)).toEqual(['200']);
    expect((await records()).map(({ program }) => program)).toEqual([before?.program]);
    expect(await instances()).toMatchObject([{ name: 'web.1', state: 'up', restarts: 0 }]);
    const entries = await host.call<AppLogEntry[]>({ op: 'readLogs', appId, query: { lines: 100_000, process: 'web' } });
    const ticks = entries.filter(({ message }) => message.startsWith('tick')).map(({ message }) => Number(message.slice(5)));
    expect(ticks.length).toBeGreaterThan(20);
    expect(ticks).toEqual(ticks.map((_, at) => at));
  });

  it('goes on with a rollout that was cut off by kill -9, with the new instances that were started already', async () => {
    const visitors = load();
    const atQuarter = Promise.withResolvers<void>();
    host.onFact(({ weight }) => void (weight === 25 && atQuarter.resolve()));
    const cut = expect(bringLive(2)).rejects.toThrow('The host ended');
    await atQuarter.promise;
    await host.kill();
    await cut;
    const fresh = (await records()).find(({ releaseVersion }) => releaseVersion === 2);
    expect((await gateway.router.readRoute(appId))?.backends.map(({ releaseVersion }) => releaseVersion)).toEqual([1, 2]);
    host = await startHost();
    const facts: RolloutFacts[] = [];
    host.onFact((fact) => facts.push(fact));
    await bringLive(2);
    expect(Object.keys((await visitors.stop()).outcomes)).toEqual(['200']);
    expect(facts[0]?.weight).toBeGreaterThanOrEqual(25);
    expect(facts.at(-1)?.phase).toBe('live');
    expect((await records()).find(({ releaseVersion }) => releaseVersion === 2)?.program).toEqual(fresh?.program);
  });

  it('restarts what crashed while no control plane ran, with the variables it was given', async () => {
    await host.detach();
    await gateway.fetch(spec(1).hosts[0] ?? '', { path: '/crash' });
    host = await startHost();
    await expect.poll(instances, { timeout: 10_000 }).toMatchObject([{ state: 'up', restarts: 1 }]);
    await expect.poll(answer, { timeout: 10_000 }).toMatch(/^v1 web\.1 /);
  });

  it('starts all again after a start of the machine, and calls that no crash', async () => {
    const [before] = await records();
    await host.kill();
    if (before?.program === undefined) throw new Error('the instance has no program');
    process.kill(before.program.init.pid, 'SIGKILL');
    const asBefore = (identity: ProcessIdentity): ProcessIdentity => ({
      ...identity,
      bootId: '00000000-0000-0000-0000-000000000000',
    });
    const program = { ...before.program, outer: asBefore(before.program.outer), init: asBefore(before.program.init) };
    await writeFile(join(dataDir, 'workloads', appId, 'instances', `${before.key}.json`), JSON.stringify({ ...before, program }));
    host = await startHost();
    await expect.poll(instances, { timeout: 10_000 }).toMatchObject([{ state: 'up', restarts: 0 }]);
    await expect.poll(answer, { timeout: 10_000 }).toMatch(/^v1 web\.1 /);
  });

  it('keeps no variable of the app in clear on disk or in a command line', async () => {
    const [record] = await records();
    const files = await readdir(join(dataDir, 'workloads'), { recursive: true, withFileTypes: true });
    const contents = await Promise.all(
      files.filter((entry) => entry.isFile()).map((entry) => readFile(join(entry.parentPath, entry.name), 'utf8')),
    );
    expect(contents.length).toBeGreaterThan(2);
    expect(contents.filter((content) => content.includes('canary-f3a1'))).toEqual([]);
    for (const pid of [record?.program?.outer.pid, record?.program?.init.pid]) {
      expect(await readFile(`/proc/${pid}/cmdline`, 'utf8')).not.toContain('canary-f3a1');
    }
  });

  it('leaves nothing running after the platform is stopped, and takes the ports out of the routes', async () => {
    const before = await records();
    await host.call({ op: 'stopAll' });
    for (const { program } of before) expect(program !== undefined && (await isAlive(program.init))).toBe(false);
    expect(await records()).toEqual([]);
    expect((await gateway.router.readRoute(appId))?.backends).toMatchObject([{ instances: [] }]);
  });

  it('gives no new instance a port that a stale route still names', async () => {
    const [before] = await records();
    await host.kill();
    if (before?.program !== undefined) process.kill(before.program.init.pid, 'SIGKILL');
    const stranger = newUuid<AppId>();
    const instance = { key: 'gone', host: '127.0.0.1', port: before?.port ?? 0 };
    await gateway.router.applyRoute({
      appId: stranger,
      appName: 'stranger',
      hosts: ['stranger.apps.localhost'],
      backends: [{ releaseVersion: 1, weight: 100, instances: [instance] }],
    });
    host = await startHost();
    await expect.poll(instances, { timeout: 10_000 }).toMatchObject([{ state: 'up' }]);
    expect((await gateway.fetch('stranger.apps.localhost')).status).toBe(503);
    await gateway.router.deleteRoute(stranger);
  });
});

describe('the cause that is reported when an app does not start', () => {
  let dataDir: string;
  let gateway: TestGateway;
  beforeAll(async () => {
    dataDir = await makeDataDir();
    gateway = await startTestGateway({}, dataDir);
  });
  afterAll(async () => {
    await gateway.stop();
    await removeDataDir(dataDir);
  });

  it.each([
    [
      'listens on another port',
      "require('node:http').createServer().listen(0)",
      /^web\.1 listens on port \d+, not on PORT \(\d+\)/,
    ],
    [
      'long before the boot limit when it ignores PORT',
      "require('node:http').createServer().listen(4567, '127.0.0.1')",
      /^web\.1 listens on port 4567, not on PORT \(\d+\)/,
    ],
    [
      'long before the boot limit on any other port',
      "require('node:http').createServer().listen(12345)",
      /^web\.1 listens on port 12345, not on PORT \(\d+\)/,
    ],
    [
      'listens where no traffic comes',
      "require('node:http').createServer().listen(process.env.PORT, '::1')",
      /^web\.1 listens on an IPv6 address only/,
    ],
    ['does not listen', 'setInterval(() => {}, 1000)', /^web\.1 did not listen on PORT \(\d+\) within 2 s/],
    [
      'takes too much memory',
      'const a = []; for (;;) a.push(Buffer.alloc(8 << 20, 1))',
      /^web\.1 ran out of memory \(512 MiB\) and was killed/,
    ],
    [
      'fails its health check',
      "require('node:http').createServer((q, r) => r.writeHead(503).end()).listen(process.env.PORT)",
      /^web\.1 answered 503 to GET \/healthz within 2 s/,
    ],
  ])('%s', async (name, script, expected) => {
    // As long as a busy machine takes to fill the memory, where that is what ends it.
    const bootSeconds = /memory|long before/.test(name) ? 60 : 2;
    const local = await openWorkloadFixture(dataDir, gateway.router, { timings: { bootSeconds } });
    try {
      const image = await makeImage(dataDir, `bad-${name.replaceAll(' ', '-')}`, { 'server.js': script });
      const spec = specOf(newUuid(), 1, image, name.includes('health') ? { healthPath: '/healthz' } : {});
      const facts: RolloutFacts[] = [];
      for await (const fact of rollOut(local.rollouts, spec)) facts.push(fact);
      expect(facts.at(-1)?.phase).toBe('aborted');
      expect(facts.at(-1)?.failure?.cause).toMatch(expected);
    } finally {
      await local.stopAll();
    }
  });
});
