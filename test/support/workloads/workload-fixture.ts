import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import { createLog, type Log } from '#shared/log.ts';
import type { Networks } from '#shared/platform/local/network/networks.ts';
import { openSandbox } from '#shared/platform/local/sandbox/open-sandbox.ts';
import { createSandboxedPrograms } from '#shared/platform/local/workloads/sandboxed-programs.ts';
import { createLocalWorkloads, type LocalWorkloads, type WorkloadTimings } from '#shared/platform/local/workloads/workloads.ts';
import type { ProcessSpec, WorkloadSpec } from '#shared/platform/workloads.ts';
import type { Router } from '#shared/routing/router.ts';
import { createSecretBox } from '#shared/secret-box.ts';

/** The shortest times at which the guarantees can still be seen. */
const quickTimings: Partial<WorkloadTimings> = {
  bootSeconds: 10,
  stopSeconds: 3,
  drainSeconds: 5,
  assetSeconds: 0.3,
  settleMilliseconds: 300,
  alivePollMilliseconds: 50,
};

export interface WorkloadFixture extends LocalWorkloads {
  readonly dataDir: string;
}

export async function makeDataDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'paas-workloads-'));
}

/** The real driver in the real sandbox; an image is a directory in `<dataDir>/images/`, named by its address. */
export async function openWorkloadFixture(
  dataDir: string,
  router: Router,
  options: { timings?: Partial<WorkloadTimings>; log?: Log; networks?: Networks } = {},
): Promise<WorkloadFixture> {
  const { networks } = options;
  const sandbox = await openSandbox({ dataDir, path: process.env['PATH'] ?? '', networks });
  const programs = createSandboxedPrograms({
    sandbox,
    networks: networks?.instances,
    readImage: async (imageUrl) => ({
      root: join(dataDir, 'images', imageUrl),
      mounts: [{ source: process.execPath, target: '/opt/node' }],
      env: {},
    }),
  });
  const secretBox = await createSecretBox(new Uint8Array(32).fill(7));
  const local = await createLocalWorkloads({
    dataDir,
    router,
    programs,
    secretBox,
    clock: systemClock,
    log: options.log ?? createLog('error', (line) => process.stderr.write(`${line}\n`)),
    timings: { ...quickTimings, ...options.timings },
  });
  return { ...local, dataDir };
}

export async function makeImage(dataDir: string, name: string, files: Readonly<Record<string, string>>): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    const target = join(dataDir, 'images', name, path);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, content);
  }
  return name;
}

export async function removeDataDir(dataDir: string): Promise<void> {
  await rm(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** The code of a server that answers with its release, its name and its pid, and exits at once at SIGTERM. `extra` runs before it listens. */
export function serverScript(extra = ''): string {
  return `
const http = require('node:http');
${extra}
const server = http.createServer((request, response) => {
  if (request.url === '/slow') return void setTimeout(() => response.end('slow ' + process.env.PAAS_RELEASE), 1500);
  if (request.url === '/crash') process.exit(3);
  if (request.url === '/busy') for (const before = process.cpuUsage(), spent = () => process.cpuUsage(before); spent().user + spent().system < 300_000; );
  response.end(process.env.PAAS_RELEASE + ' ' + process.env.PAAS_PROCESS + ' ' + process.pid);
});
server.listen(process.env.PORT, () => console.log('listening on ' + process.env.PORT));
process.on('SIGTERM', () => process.exit(0));
`;
}

export const webProcess: ProcessSpec = { type: 'web', command: '/opt/node server.js', quantity: 1 };

export function specOf(appId: AppId, releaseVersion: number, imageUrl: string, change: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const appName = `app-${appId.slice(0, 8)}`;
  return {
    appId,
    appName,
    tenantId: newTenantId(),
    releaseId: newUuid<ReleaseId>(),
    releaseVersion,
    imageUrl,
    processes: [webProcess],
    config: { COLOR: 'green', SECRET: 'canary-f3a1' },
    bindings: [],
    hosts: [`${appName}.apps.localhost`],
    ...change,
  };
}
