import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { mkdtemp, readdir, readFile, readlink, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { endSandbox, type SandboxRecord } from '#shared/platform/local/sandbox/sandbox-process.ts';
import { ampleQuotasSetting } from '#test/support/core/ample-quotas.ts';
import { copyClusterTemplate } from '#test/support/database/cluster-template.ts';
import { run } from '#test/support/run-program.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const root = new URL('../../../', import.meta.url).pathname;

const bunPath = join(root, 'node_modules/.bin/bun');

/** TEST_RUNTIME=bun runs the platforms of the tests on Bun; the tests themselves run on Node. */
export const platformRuntime = process.env['TEST_RUNTIME'] === 'bun' ? bunPath : process.execPath;

export interface RunningPlatform {
  readonly pid: number;
  readonly httpPort: number;
  readonly httpsPort: number;
  readonly sshPort: number;
  readonly metricsPort: number;
  readonly dataDir: string;
  readonly baseUrl: string;
  /** Everything it printed so far. */
  output(): string;
  /** As Ctrl-C does it; resolves with the exit code. */
  stop(): Promise<number | null>;
  /** The process of the control plane alone, without warning. */
  kill(): Promise<void>;
}

export interface PlatformOptions {
  /** Another checkout of the source, with its node_modules; by default this one. */
  checkout?: string;
  /** By default that of TEST_RUNTIME. */
  runtime?: 'bun';
  /** Of an earlier platform; else a new one that `removePlatform` removes. */
  dataDir?: string;
  /** Whether the new data directory is empty, as an operator's is; else it has a database cluster without tables. */
  empty?: boolean;
  ports?: { http: number; https: number; ssh: number };
  env?: Record<string, string>;
}

/** The whole of `npm start` but the set-up: a real control plane on ports and a data directory of its own. */
export async function startPlatform(options: PlatformOptions = {}): Promise<RunningPlatform> {
  const dataDir = options.dataDir ?? (await makeDataDir(options.empty ?? false));
  const ports = options.ports ?? { http: await freePort(), https: await freePort(), ssh: await freePort() };
  const metricsPort = await freePort();
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('PAAS_')));
  const checkout = options.checkout ?? root;
  const child = spawn(options.runtime === 'bun' ? bunPath : platformRuntime, [join(checkout, 'deploy/single-machine.ts')], {
    cwd: checkout,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...inherited,
      PAAS_DATA_DIR: dataDir,
      PAAS_HOST: '127.0.0.1',
      PAAS_HTTP_PORT: String(ports.http),
      PAAS_HTTPS_PORT: String(ports.https),
      PAAS_SSH_PORT: String(ports.ssh),
      PAAS_METRICS_PORT: String(metricsPort),
      PAAS_CANARY_STEP_SECONDS: '2',
      // Another checkout may be older than this setting.
      ...(options.checkout === undefined ? { PAAS_QUOTAS: ampleQuotasSetting } : {}),
      ...options.env,
    },
  });
  const output = await waitUntilReady(child);
  return {
    pid: child.pid ?? 0,
    httpPort: ports.http,
    httpsPort: ports.https,
    sshPort: ports.ssh,
    metricsPort,
    dataDir,
    baseUrl: `http://localhost:${ports.http}`,
    output,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      const exited = once(child, 'exit');
      child.kill('SIGINT');
      const [code] = (await exited) as [number | null];
      return code;
    },
    async kill() {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** A new data directory, with the toolchains of earlier runs where they are kept. @param empty as an operator's is; else it has a database cluster without tables */
export async function makeDataDir(empty: boolean): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'paas-platform-'));
  if (!empty) await copyClusterTemplate(join(dataDir, 'postgres'));
  const kept = process.env['PAAS_TEST_TOOLCHAINS'];
  if (kept !== undefined) await symlink(kept, join(dataDir, 'toolchains'));
  return dataDir;
}

/** Resolves once it prints that it is ready; rejects with all it printed when it ends before. */
async function waitUntilReady(child: ChildProcess): Promise<() => string> {
  const lines: string[] = [];
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        if (line.startsWith('paas is ready')) resolve();
      });
    }
    child.once('exit', (code) => reject(new Error(`The platform ended with ${code} before it was ready:\n${lines.join('\n')}`)));
  });
  return () => lines.join('\n');
}

/** Stops it and removes its data, with whatever it left running. */
export async function removePlatform(platform: RunningPlatform): Promise<void> {
  await platform.stop();
  await endLeftovers(platform.dataDir);
  await rm(platform.dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}

/**
 * After a kill: the gateway, PostgreSQL and apps that were meant to outlive it. They name the data directory in their arguments, or write
 * into it; apps do neither, and are in its records.
 */
export async function endLeftovers(dataDir: string): Promise<void> {
  for (const path of globSync('workloads/*/instances/*.json', { cwd: dataDir })) {
    const record = JSON.parse(await readFile(join(dataDir, path), 'utf8')) as { program?: SandboxRecord };
    if (record.program !== undefined) await endSandbox(record.program);
  }
  // Of a build that ran.
  await run('umount', ['-n', '-l', join(dataDir, 'volumes')]);
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    const traces = await Promise.all([
      ...['cmdline', 'environ'].map((file) => readFile(`/proc/${name}/${file}`, 'latin1').catch(() => '')),
      readlink(`/proc/${name}/fd/1`).catch(() => ''),
    ]);
    if (!traces.some((trace) => trace.includes(dataDir))) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It ended by itself meanwhile.
    }
  }
}
