/**
 * `npm run bench:api`: the API beside a bare handler of the same query, and beside itself with a hundred times the data.
 * Only ratios of rounds that were run one right after the other are worth reading. It fails by errors, not by figures.
 * `npm run bench:api -- beside`, `scaled` or `bun` runs one part. `bun` compares the API on Bun with the API on Node.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchPlatform, openBenchPlatform } from './bench-platform.ts';
import { compareTwo, type Measured, type Measurement, startClient } from './measure.ts';
import type { BenchUser } from './seed.ts';

const small = { apps: 1000, builds: 1000 };
const large = { apps: 100_000, builds: 1_000_000 };

const beside = {
  'GET /v1/apps/:id': (user: BenchUser) => `/v1/apps/${user.appId}`,
  'GET /v1/apps': () => '/v1/apps',
};
const ofAnApp = [
  '',
  '/git',
  '/builds',
  '/builds/latest',
  '/releases',
  '/deploys',
  '/config',
  '/processes',
  '/addons',
  '/domains',
];
const ofATeam = ['/v1/apps', '/v1/apps?deleted=true', '/v1/user', '/v1/tenants', '/v1/tenant/members', '/v1/tenant/invitations'];
const ofAUser = ['/v1/auth/tokens', '/v1/auth/ssh-keys'];
const scaled: Record<string, (user: BenchUser) => string> = Object.fromEntries([
  ...ofAnApp.map((rest) => [`GET /v1/apps/:id${rest}`, (user: BenchUser) => `/v1/apps/${user.appId}${rest}`] as const),
  ...[...ofATeam, ...ofAUser].map((path) => [`GET ${path}`, () => path] as const),
]);

const [part] = process.argv.slice(2);
const directory = await mkdtemp(join(tmpdir(), 'paas-bench-'));
const started = new AsyncDisposableStack();
const client = startClient();
started.defer(() => client.end());
started.defer(() => rm(directory, { recursive: true, force: true }));
try {
  const platform = await openBenchPlatform(small);
  started.defer(() => platform.close());
  if (part === undefined || part === 'beside') await compareWithBare(platform);
  if (part === undefined || part === 'bun') await compareWithBun(platform);
  if (part === undefined || part === 'scaled') await compareWithLarge(platform);
} finally {
  await started.disposeAsync();
}

async function compareWithBare(platform: BenchPlatform): Promise<void> {
  const bareSocket = join(directory, 'bare.sock');
  const bareServer = spawn(process.execPath, [join(import.meta.dirname, 'bare-server.ts'), bareSocket, platform.databaseUrl], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  started.defer(() => void bareServer.kill());
  await once(bareServer.stdout, 'data');
  const bare = { socketPath: bareSocket, pid: bareServer.pid ?? 0, databasePid: platform.databasePid };
  printHeader('beside a bare Hono and pg handler', 'ours to theirs');
  for (const [name, path] of Object.entries(beside)) {
    await compare(name, platform.measured(path), { ...bare, requests: platform.requests(path) });
  }
}

async function compareWithBun(platform: BenchPlatform): Promise<void> {
  const onBun = await openBenchPlatform(small, 'bun');
  started.defer(() => onBun.close());
  printHeader('on Bun beside Node', 'Bun to Node');
  for (const [name, path] of Object.entries(beside)) await compare(name, onBun.measured(path), platform.measured(path));
}

function printHeader(what: string, ratio: string): void {
  console.log(`${what.padEnd(36)} requests/s       p50 ms           p99 ms           server CPU µs    database CPU µs  ${ratio}`);
}

async function compare(name: string, first: Measured, second: Measured): Promise<void> {
  const { one, other, ratio } = await compareTwo(client, first, second);
  console.log(
    `${name.padEnd(36)} ${columns(one, other)} ${ratio.requestsPerSecond.toFixed(2)} of the requests, ${ratio.p99.toFixed(2)} of the p99`,
  );
}

async function compareWithLarge(platform: BenchPlatform): Promise<void> {
  const largeGround = await openBenchPlatform(large);
  started.defer(() => largeGround.close());
  console.log('100,000 apps and 1,000,000 builds beside 1,000 of both');
  for (const [name, path] of Object.entries(scaled)) {
    const { one, other, ratio } = await compareTwo(client, largeGround.measured(path), platform.measured(path));
    console.log(
      `${name.padEnd(36)} ${columns(one, other)} ${ratio.p99.toFixed(2)} of the p99, ${ratio.p50.toFixed(2)} of the p50`,
    );
  }
}

function columns(one: Measurement, other: Measurement): string {
  return (['requestsPerSecond', 'p50', 'p99', 'serverCpu', 'databaseCpu'] as const)
    .map((key) => {
      const digits = key === 'p50' || key === 'p99' ? 1 : 0;
      return `${one[key].toFixed(digits)} / ${other[key].toFixed(digits)}`.padEnd(16);
    })
    .join(' ');
}
