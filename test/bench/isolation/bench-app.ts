import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { measureTree } from '#test/bench/push/process-tree.ts';
import { removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { createUser } from '#test/support/platform/user.ts';

type Figures = Readonly<Record<string, number>>;

/** An app on a platform of its own, and what it costs. */
export interface BenchApp {
  /** Through the gateway: 16 connections, one request each at a time. */
  measureRequests(): Promise<Figures>;
  /** From a change of the quantity until the second instance serves. */
  measureStart(): Promise<Figures>;
  /** Memory of the processes of one instance, each page counted by its share. */
  measureMemory(): Promise<Figures>;
  /** From `git push` until it reports that the release is live. */
  measurePush(round: number): Promise<Figures>;
  close(): Promise<void>;
}

const requests = 2000;
const connections = 16;
const mebibyte = 1024 * 1024;
const files = {
  'package.json': JSON.stringify({ name: 'bench', version: '1.0.0', private: true }),
  Procfile: 'web: node server.js\n',
  'server.js': `require('node:http').createServer((_, answer) => answer.end('hello')).listen(process.env.PORT);\n`,
};

interface Instance {
  readonly state: string;
}

/** @param options.checkout the source of the platform; by default this one */
export async function openBenchApp(options: { checkout?: string }): Promise<BenchApp> {
  const platform = await startPlatform({ ...options, env: { PAAS_LOG_LEVEL: 'warn' } });
  const user = await createUser(platform);
  const app = await user.createApp('bench');
  const copy = await user.createWorkingCopy(app.push_url, files);
  const push = async (): Promise<void> => {
    const { code, stderr } = await copy.push('paas', 'HEAD:main');
    if (code !== 0) throw new Error(`the push failed: ${stderr}`);
  };
  await push();

  const pids = (): Promise<readonly number[]> => findProcesses(platform.dataDir);
  async function scaleTo(quantity: number): Promise<void> {
    await user.api('PATCH', '/v1/apps/bench/processes/web', { quantity });
    for (;;) {
      const processes = await user.api<{ type: string; instances: readonly Instance[] }[]>('GET', '/v1/apps/bench/processes');
      const instances = processes.flatMap((process) => process.instances);
      if (instances.length === quantity && instances.every(({ state }) => state === 'up')) return;
      await delay(20);
    }
  }

  return {
    async measureRequests() {
      const pool = new Pool(`http://127.0.0.1:${platform.httpPort}`, { connections });
      const times: number[] = [];
      let left = requests;
      const work = async (): Promise<void> => {
        while (left-- > 0) {
          const sent = performance.now();
          const { statusCode, body } = await pool.request({
            path: '/',
            method: 'GET',
            headers: { host: 'bench.apps.localhost' },
          });
          await body.text();
          if (statusCode !== 200) throw new Error(`the app answered ${statusCode}`);
          times.push(performance.now() - sent);
        }
      };
      const began = performance.now();
      const use = await measureTree(await pids(), async () => {
        await Promise.all(Array.from({ length: connections }, work));
      });
      const seconds = (performance.now() - began) / 1000;
      await pool.close();
      const sorted = times.toSorted((one, other) => one - other);
      return {
        'requests/s': requests / seconds,
        'p50 ms': sorted[Math.floor(requests * 0.5)] ?? 0,
        'p99 ms': sorted[Math.floor(requests * 0.99)] ?? 0,
        'CPU ms per 1,000 requests': (use.cpuSeconds / requests) * 1_000_000,
      };
    },
    async measureStart() {
      const began = performance.now();
      const use = await measureTree(await pids(), () => scaleTo(2));
      const milliseconds = performance.now() - began;
      await scaleTo(1);
      return { ms: milliseconds, 'CPU ms': use.cpuSeconds * 1000 };
    },
    async measureMemory() {
      const before = new Set(await findTree(platform.pid));
      await scaleTo(2);
      const added = (await findTree(platform.pid)).filter((pid) => !before.has(pid));
      const bytes = (await Promise.all(added.map(readProportionalBytes))).reduce((sum, each) => sum + each, 0);
      await scaleTo(1);
      return { MiB: bytes / mebibyte, processes: added.length };
    },
    async measurePush(round) {
      await copy.commit({ 'round.txt': String(round) });
      const began = performance.now();
      const use = await measureTree(await pids(), push);
      return { seconds: (performance.now() - began) / 1000, 'CPU seconds': use.cpuSeconds };
    },
    async close() {
      await user.remove();
      await removePlatform(platform);
    },
  };
}

/** The processes of a platform whose arguments or environment name its data directory; others descend from them. */
async function findProcesses(dataDir: string): Promise<readonly number[]> {
  const all = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
  const found = await Promise.all(
    all.map(async (name) => {
      const traces = ['cmdline', 'environ'].map((file) => readFile(`/proc/${name}/${file}`, 'latin1').catch(() => ''));
      return (await Promise.all(traces)).some((trace) => trace.includes(dataDir)) ? [Number(name)] : [];
    }),
  );
  return found.flat();
}

async function findTree(pid: number): Promise<number[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, 'latin1').catch(() => '')));
  const children = lists
    .join(' ')
    .split(/\s+/)
    .filter((text) => text !== '')
    .map(Number);
  return [pid, ...(await Promise.all(children.map(findTree))).flat()];
}

async function readProportionalBytes(pid: number): Promise<number> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, 'latin1').catch(() => '');
  return Number(/^Pss:\s+(\d+) kB/m.exec(rollup)?.[1] ?? 0) * 1024;
}
