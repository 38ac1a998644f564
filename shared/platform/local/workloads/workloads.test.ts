import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { describeRollouts } from '#shared/platform/contract/rollouts.ts';
import { describeUsageMetrics, type UsageMetricsUnderTest } from '#shared/platform/contract/usage-metrics.ts';
import { describeWorkloads } from '#shared/platform/contract/workloads.ts';
import type { RolloutFacts } from '#shared/platform/rollouts.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import { visitRouter } from '#shared/platform/testing/visit-router.ts';
import type { RunOutput, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { AppRoute } from '#shared/routing/app-route.ts';
import { createFakeRouter } from '#shared/routing/fake-router.ts';
import {
  makeDataDir,
  makeImage,
  openWorkloadFixture,
  removeDataDir,
  serverScript,
  specOf,
} from '#test/support/workloads/workload-fixture.ts';

async function openFixture(): Promise<UsageMetricsUnderTest> {
  const dataDir = await makeDataDir();
  const router = createFakeRouter();
  const local = await openWorkloadFixture(dataDir, router);
  await local.adopt();
  const fetchFrom = async (appId: AppId, name: string, path: string): Promise<string> => {
    const instances = (await router.readRoute(appId))?.backends[0]?.instances ?? [];
    const port = instances.find(({ key }) => key.startsWith(`${name}.`))?.port;
    return (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  };
  return {
    workloads: local.workloads,
    rollouts: local.rollouts,
    metrics: local.metrics,
    logs: local.logs,
    ...visitRouter(router),
    image: await makeImage(dataDir, 'contract', { 'server.js': serverScript() }),
    commands: { serve: '/opt/node server.js', work: 'sleep 1000', fail: 'echo no database; exit 4' },
    runs: { exits9: 'echo out; exit 9', hangs: 'trap "" TERM; echo out; sleep 1000 & wait; wait' },
    async crash(appId, name) {
      await fetchFrom(appId, name, '/crash').catch(() => undefined);
    },
    async work(appId, name) {
      await fetchFrom(appId, name, '/busy');
    },
    async stop() {
      await local.stopAll();
      await removeDataDir(dataDir);
    },
  };
}

describeWorkloads('local', openFixture);
describeRollouts('local', openFixture);
describeUsageMetrics('local', openFixture);

describe('health of local instances', () => {
  /** An app without a network of its own, as on a platform that does not run as root. `whenStarted` gets the port of its instance. */
  async function rollOutSquatted(script: string, whenStarted: (port: number) => void): Promise<RolloutFacts | undefined> {
    const dataDir = await makeDataDir();
    const reports = createServer((request, response) => {
      whenStarted(Number(request.url?.slice(1)));
      response.end();
    }).listen(0, '127.0.0.1');
    await once(reports, 'listening');
    const { port } = reports.address() as AddressInfo;
    const router = createFakeRouter();
    const { rollouts, stopAll } = await openWorkloadFixture(dataDir, router, { timings: { bootSeconds: 3 } });
    try {
      const report = `require('node:http').get('http://127.0.0.1:${port}/' + process.env.PORT);`;
      const imageUrl = await makeImage(dataDir, 'squatted', { 'server.js': `${report}\n${script}` });
      let last: RolloutFacts | undefined;
      for await (const facts of rollOut(rollouts, specOf(newUuid<AppId>(), 1, imageUrl))) last = facts;
      return last;
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
      reports.close();
    }
  }

  it('is not that of another process that has taken the port: no traffic is sent there', async () => {
    const squatter = createServer((_, response) => void response.end('stolen'));
    try {
      const facts = await rollOutSquatted('setInterval(() => undefined, 1000);', (port) => squatter.listen(port, '0.0.0.0'));
      expect(facts).toMatchObject({
        phase: 'aborted',
        failure: { cause: expect.stringContaining('did not listen on PORT, which another process uses, within 3 s') },
      });
      expect(squatter.listening).toBe(true);
    } finally {
      squatter.close();
    }
  });

  it('is that of any process of the instance', async () => {
    const script = `require('node:child_process').spawn('/opt/node', ['-e', 'require("node:http").createServer((_, r) => r.end()).listen(process.env.PORT)']);`;
    expect(await rollOutSquatted(script, () => undefined)).toMatchObject({ phase: 'live' });
  });
});

describe('settings of a release', () => {
  const slowHealth = `
    require('node:http').createServer((request, response) => {
      if (request.url !== '/up') response.end();
      else setTimeout(() => response.end(), 1500);
    }).listen(process.env.PORT);`;

  async function bringLive(
    change: Partial<WorkloadSpec>,
  ): Promise<{ last: RolloutFacts | undefined; route: AppRoute | undefined }> {
    const dataDir = await makeDataDir();
    const router = createFakeRouter();
    const { rollouts, stopAll } = await openWorkloadFixture(dataDir, router);
    try {
      const imageUrl = await makeImage(dataDir, 'slow', { 'server.js': slowHealth });
      const spec = specOf(newUuid<AppId>(), 1, imageUrl, change);
      let last: RolloutFacts | undefined;
      for await (const facts of rollOut(rollouts, spec)) last = facts;
      return { last, route: await router.readRoute(spec.appId) };
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  }

  it('bound the time of each answer of the health path, and that of the whole start', async () => {
    const began = performance.now();
    const { last } = await bringLive({ healthPath: '/up', healthTimeoutSeconds: 1, bootTimeoutSeconds: 3 });
    expect(last?.failure?.cause).toBe('web.1 gave no answer within 1 s to GET /up within 3 s');
    expect(performance.now() - began).toBeGreaterThan(2900);
    expect((await bringLive({ healthPath: '/up', healthTimeoutSeconds: 5 })).last?.phase).toBe('live');
  });

  it('decide whether visitors stay with one release and one instance', async () => {
    expect((await bringLive({})).route).not.toHaveProperty('sessionAffinity');
    expect((await bringLive({ sessionAffinity: false })).route).toHaveProperty('sessionAffinity', false);
  });
});

describe('local output', () => {
  /** What a worker with this script prints. */
  async function atPrinter(script: string, check: (printed: () => Promise<string[]>) => Promise<void>): Promise<void> {
    const dataDir = await makeDataDir();
    const { workloads, logs, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const appId = newUuid<AppId>();
      const imageUrl = await makeImage(dataDir, 'printer', { 'print.sh': script });
      await workloads.ensureWorkload(
        specOf(appId, 1, imageUrl, { processes: [{ type: 'worker', command: 'sh print.sh', quantity: 1 }] }),
      );
      await check(async () => (await logs.readLogs(appId, { lines: 1000, process: 'worker' })).map(({ message }) => message));
      expect(await workloads.readInstances(appId)).toMatchObject([{ state: 'up', restarts: 0 }]);
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  }

  it('is a pipe, which the app may open again, and which shows no path of the host', async () => {
    const script = 'echo opened > /dev/stderr; echo again > /dev/stdout; readlink /proc/self/fd/*; echo end; sleep 1000';
    await atPrinter(script, async (printed) => {
      await expect.poll(printed).toContain('end');
      const lines = await printed();
      expect(lines).toEqual(expect.arrayContaining(['opened', 'again', expect.stringMatching(/^pipe:/)]));
      expect(lines.filter((line) => line.startsWith('/') && line !== '/dev/null')).toEqual([]);
    });
  });

  it('takes no disk space but what is printed', async () => {
    const script =
      'fallocate -l 1G /dev/stdout || echo refused; truncate -s 3G /dev/stdout || echo refused; echo end; sleep 1000';
    await atPrinter(script, async (printed) => {
      await expect.poll(printed).toContain('end');
      expect((await printed()).filter((line) => line === 'refused')).toHaveLength(2);
    });
  });
});

describe('local commands', () => {
  it('may write beside their code and at home; nothing of it is there for the next one', async () => {
    const dataDir = await makeDataDir();
    const { workloads, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const spec = specOf(newUuid(), 1, await makeImage(dataDir, 'writer', { 'lib/code.js': '1' }));
      for (let round = 0; round < 2; round += 1) {
        const lines: string[] = [];
        const command =
          'echo "$HOME"; ls; mkdir uploads && echo kept > uploads/a && echo set > ~/.settings && cat uploads/a .settings';
        const run = { id: crypto.randomUUID(), spec, command };
        expect(await workloads.runOnce(run, (line) => lines.push(line), new AbortController().signal)).toBe(0);
        expect(lines).toEqual(['/app', 'lib', 'kept', 'set']);
      }
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  });

  it('give all of their output, though they are over before anybody reads', async () => {
    const dataDir = await makeDataDir();
    const { workloads, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const spec = specOf(newUuid(), 1, await makeImage(dataDir, 'empty', { file: '' }));
      for (let round = 0; round < 20; round += 1) {
        const lines: string[] = [];
        const run = { id: 'same run', spec, command: 'echo out; echo err >&2' };
        const code = await workloads.runOnce(run, (line) => lines.push(line), new AbortController().signal);
        expect([code, lines.toSorted()]).toEqual([0, ['err', 'out']]);
      }
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  });

  const never = new AbortController().signal;
  /** Reads a run to its end. */
  async function readAll(
    output: AsyncIterable<RunOutput>,
  ): Promise<{ stdout: string; stderr: string; exitCode: number | undefined }> {
    const seen = { stdout: '', stderr: '', exitCode: undefined as number | undefined };
    for await (const item of output) {
      if ('exitCode' in item) seen.exitCode = item.exitCode;
      if ('stream' in item) seen[item.stream] += new TextDecoder().decode(item.bytes);
    }
    return seen;
  }

  it('that somebody watches read what is written to them, in order, and as much as there is', async () => {
    const dataDir = await makeDataDir();
    const { workloads, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const spec = specOf(newUuid(), 1, await makeImage(dataDir, 'reader', { file: '' }));
      const run = { id: crypto.randomUUID(), spec, command: 'sleep 1; sha256sum; echo done >&2; exit 7', input: true };
      const hash = createHash('sha256');
      const events = workloads.runAttached(run, never)[Symbol.asyncIterator]();
      expect((await events.next()).value).toEqual({ started: true });
      const end = readAll({ [Symbol.asyncIterator]: () => events });
      for (let part = 0; part < 20; part += 1) {
        const bytes = new Uint8Array(300_000).fill(part);
        hash.update(bytes);
        expect(await workloads.writeInput(run.id, bytes)).toBe(true);
      }
      expect(await workloads.writeInput(run.id, null)).toBe(true);
      expect(await end).toEqual({ stdout: `${hash.digest('hex')}  -\n`, stderr: 'done\n', exitCode: 7 });
      expect(await workloads.writeInput(run.id, null)).toBe(false);
      expect(await readAll(workloads.runAttached({ ...run, input: false, command: 'cat' }, never))).toMatchObject({
        exitCode: 0,
      });
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  });

  it('that somebody watches are asked to end before they are killed, and their last words are read', async () => {
    const dataDir = await makeDataDir();
    const { workloads, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const spec = specOf(newUuid(), 1, await makeImage(dataDir, 'polite', { file: '' }));
      const command = "trap 'echo bye; exit 3' TERM; echo ready; sleep 1000 & wait";
      const run = { id: crypto.randomUUID(), spec, command, input: false };
      const cancel = new AbortController();
      let output = '';
      const read = async (): Promise<void> => {
        for await (const item of workloads.runAttached(run, cancel.signal)) {
          if ('stream' in item) output += new TextDecoder().decode(item.bytes);
          if (output === 'ready\n') cancel.abort(new Error('enough'));
        }
      };
      await expect(read()).rejects.toThrow('enough');
      expect(output).toBe('ready\nbye\n');
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  });

  it('that somebody watches may have a terminal, in which Ctrl-C reaches the program', async () => {
    const dataDir = await makeDataDir();
    const { workloads, stopAll } = await openWorkloadFixture(dataDir, createFakeRouter());
    try {
      const spec = specOf(newUuid(), 1, await makeImage(dataDir, 'terminal', { file: '' }));
      const terminal = { columns: 101, rows: 31, name: 'vt100' };
      const command = 'tty -s && stty size; echo "$TERM $0"; trap "echo caught; exit 5" INT; echo ready; sleep 1000 & wait';
      const run = { id: crypto.randomUUID(), spec, command, input: true, terminal };
      let output = '';
      let exitCode: number | undefined;
      let interrupted = false;
      for await (const item of workloads.runAttached(run, never)) {
        if ('exitCode' in item) exitCode = item.exitCode;
        if ('stream' in item) output += new TextDecoder().decode(item.bytes);
        if (output.includes('ready') && !interrupted) {
          interrupted = true;
          await workloads.writeInput(run.id, new TextEncoder().encode('\x03'));
        }
      }
      expect(output.replaceAll('\r', '')).toBe('31 101\nvt100 /bin/sh\nready\n^Ccaught\n');
      expect(exitCode).toBe(5);
    } finally {
      await stopAll();
      await removeDataDir(dataDir);
    }
  });
});
