import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import { endLeftovers, makeDataDir } from '#test/support/platform/running-platform.ts';
import { type PartProcess, type ProcessKind, settingsOfParts, startPart } from '#test/support/platform/running-processes.ts';
import { createUser, type User, visit, type WorkingCopy } from '#test/support/platform/user.ts';

const kinds: readonly ProcessKind[] = ['gateway', 'worker', 'api', 'sshd'];

describe('two processes each of api, sshd, worker and gateway, on one data directory', () => {
  const running: PartProcess[] = [];
  let settings: Record<string, string>;
  let dataDir: string;
  let httpPort: number;
  let user: User;
  let copy: WorkingCopy;

  const start = (kind: ProcessKind): PartProcess => {
    const part = startPart(kind, settings);
    running.push(part);
    return part;
  };
  const firstOf = (kind: ProcessKind): PartProcess => {
    const part = running.find((each) => each.kind === kind);
    if (part === undefined) throw new Error(`No ${kind} runs.`);
    return part;
  };
  const kill = async (kind: ProcessKind): Promise<void> => {
    const part = firstOf(kind);
    running.splice(running.indexOf(part), 1);
    await part.end('SIGKILL');
  };
  const pushAndVisit = async (text: string): Promise<void> => {
    await copy.commit(nodeApp(text));
    const push = await copy.push();
    expect(push.output).toMatch(/deployed\s*\n/);
    expect(push.code).toBe(0);
    expect(await visit({ httpPort }, 'hello')).toEqual({ status: 200, body: text });
  };

  beforeAll(async () => {
    dataDir = await makeDataDir(false);
    ({ settings, httpPort } = await settingsOfParts(dataDir));
    // In an order that has every process wait for another.
    const started = ['api', 'sshd', 'worker', 'gateway'].map((kind) => start(kind as ProcessKind));
    await Promise.all(started.map((part) => part.printed(`paas ${part.kind} is ready`)));
    const others = kinds.map(start);
    await Promise.all(
      others.map((part) => part.printed(part.kind === 'worker' ? '-----> Waiting for' : `paas ${part.kind} is ready`)),
    );
    user = await createUser({ baseUrl: `http://localhost:${httpPort}` });
    const app = await user.createApp('hello');
    copy = await user.createWorkingCopy(app.push_url, nodeApp('one'));
    const push = await copy.push();
    expect(push.code, push.output).toBe(0);
  });
  afterAll(async () => {
    await user?.remove();
    for (const part of running) await part.end('SIGKILL');
    await endLeftovers(dataDir);
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
  });

  it('show what only the worker knows', async () => {
    const [web] = await user.api<{ instances: { state: string }[] }[]>('GET', '/v1/apps/hello/processes');
    expect(web?.instances.map(({ state }) => state)).toEqual(['up']);
    const log = await user.api<{ process: string }[]>('GET', '/v1/apps/hello/logs');
    expect(log.map((entry) => entry.process)).toContain('paas');
    const cache = await user.api<{ flushed: boolean }>('DELETE', '/v1/apps/hello/build_cache/flush');
    expect(cache.flushed).toBe(true);
  });

  it.each(['api', 'sshd', 'gateway'] as const)('serve on when one %s is killed: requests, visits and pushes', async (kind) => {
    await kill(kind);
    for (let n = 0; n < 20; n += 1) {
      const [apps, page] = await Promise.all([user.ask('GET', '/v1/apps'), visit({ httpPort }, 'hello')]);
      expect([apps.status, page.status]).toEqual([200, 200]);
    }
    await pushAndVisit(`after ${kind}`);
    const again = start(kind);
    await again.printed(`paas ${kind} is ready`);
    await pushAndVisit(`with a new ${kind}`);
  });

  it('hand everything to the second worker when the first is killed, and visitors notice nothing', async () => {
    const before = (await visit({ httpPort }, 'hello')).body;
    await copy.commit(nodeApp('built over a takeover'));
    const pushing = copy.push();
    await expect
      .poll(async () => (await user.api<{ status: string }[]>('GET', '/v1/apps/hello/builds'))[0]?.status)
      .toBe('running');
    await kill('worker');
    expect((await visit({ httpPort }, 'hello')).body).toBe(before);
    await firstOf('worker').printed('paas worker is ready');
    const push = await pushing;
    expect(push.code, push.output).toBe(0);
    expect((await visit({ httpPort }, 'hello')).body).toBe('built over a takeover');
  });

  it('end cleanly one by one, and leave the apps to the next worker', async () => {
    for (const part of running.splice(0)) {
      if (part.kind !== 'gateway') expect(await part.end('SIGTERM'), part.output()).toBe(0);
      else running.push(part);
    }
    expect((await visit({ httpPort }, 'hello')).status).toBe(200);
  });
});
