/**
 * `npm run bench:api`: the API beside a bare handler of the same query, and beside itself with a hundred times the data.
 * Only ratios of rounds that were run one right after the other are worth reading. It fails by errors, not by figures.
 * `npm run bench:api -- beside` or `scaled` runs one of the two.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BenchPlatform, openBenchPlatform } from './bench-platform.ts';
import { compareTwo, type Measurement } from './measure.ts';
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
started.defer(() => rm(directory, { recursive: true, force: true }));
try {
  const platform = await openBenchPlatform(small);
  started.defer(() => platform.close());
  if (part !== 'scaled') await compareWithBare(platform);
  if (part !== 'beside') await compareWithLarge(platform);
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

  console.log('beside a bare Hono and pg handler    requests/s       p50 ms           p99 ms           ours to theirs');
  for (const [name, path] of Object.entries(beside)) {
    const sent = platform.requests(path);
    const { one, other, ratio } = await compareTwo(
      { socketPath: platform.apiSocket, requests: sent },
      { socketPath: bareSocket, requests: sent },
    );
    console.log(
      `${name.padEnd(36)} ${columns(one, other)} ${ratio.requestsPerSecond.toFixed(2)} of the requests, ${ratio.p99.toFixed(2)} of the p99`,
    );
  }
}

async function compareWithLarge(platform: BenchPlatform): Promise<void> {
  const largeGround = await openBenchPlatform(large);
  started.defer(() => largeGround.close());
  console.log('100,000 apps and 1,000,000 builds beside 1,000 of both');
  for (const [name, path] of Object.entries(scaled)) {
    const { one, other, ratio } = await compareTwo(
      { socketPath: largeGround.apiSocket, requests: largeGround.requests(path) },
      { socketPath: platform.apiSocket, requests: platform.requests(path) },
    );
    console.log(
      `${name.padEnd(36)} ${columns(one, other)} ${ratio.p99.toFixed(2)} of the p99, ${ratio.p50.toFixed(2)} of the p50`,
    );
  }
}

function columns(one: Measurement, other: Measurement): string {
  return (['requestsPerSecond', 'p50', 'p99'] as const)
    .map((key) => {
      const digits = key === 'requestsPerSecond' ? 0 : 1;
      return `${one[key].toFixed(digits)} / ${other[key].toFixed(digits)}`.padEnd(16);
    })
    .join(' ');
}
