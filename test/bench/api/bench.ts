/** `npm run bench:api`: the API beside a bare handler of the same query, and beside itself with a hundred times the data. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { removePlatform, startPlatform } from '#test/support/platform.ts';
import { openTestPostgres } from '#test/support/postgres.ts';
import { type Measurement, measure, middle, type Request } from './measure.ts';
import { type BenchUser, fillDatabase, signUpUsers } from './seed.ts';

const users = 200;
const rounds = 5;
const requestsPerRound = 2000;
/** The larger database is one hundred times this, and has a thousand times the builds. */
const small = { apps: 1000, builds: 1000 };
const large = { apps: 100_000, builds: 1_000_000 };

const compared = {
  'GET /v1/apps/:id': (user: BenchUser) => `/v1/apps/${user.appId}`,
  'GET /v1/apps': () => '/v1/apps',
};
const scaled = {
  ...compared,
  'GET /v1/apps/:id/builds': (user: BenchUser) => `/v1/apps/${user.appId}/builds`,
  'GET /v1/apps/:id/builds/latest': (user: BenchUser) => `/v1/apps/${user.appId}/builds/latest`,
  'GET /v1/apps/:id/releases': (user: BenchUser) => `/v1/apps/${user.appId}/releases`,
  'GET /v1/apps/:id/deploys': (user: BenchUser) => `/v1/apps/${user.appId}/deploys`,
  'GET /v1/tenant/members': () => '/v1/tenant/members',
  'GET /v1/auth/tokens': () => '/v1/auth/tokens',
};

const directory = await mkdtemp(join(tmpdir(), 'paas-bench-'));
const postgres = await openTestPostgres();
const databaseUrl = postgres.url;
const platform = await startPlatform({ env: { PAAS_DATABASE_URL: databaseUrl, PAAS_LOG_LEVEL: 'warn' } });
const apiSocket = join(platform.dataDir, 'gateway/api.sock');
const bareSocket = join(directory, 'bare.sock');
const bareServer = spawn(process.execPath, [join(import.meta.dirname, 'bare-server.ts'), bareSocket, databaseUrl], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
try {
  await once(bareServer.stdout, 'data');
  // Past the gateway: every user comes from an address of their own, and the API alone is measured.
  const dispatcher = new Agent({ connect: { socketPath: apiSocket } });
  const send: typeof fetch = (input, init) => fetch(input, { ...init, dispatcher });
  const people = await signUpUsers(platform, users, send);
  await dispatcher.close();
  const requests = (path: (user: BenchUser) => string): Request[] =>
    Array.from({ length: requestsPerRound }, (_, index) => {
      const user = people[index % people.length];
      if (user === undefined) throw new Error('nobody signed up');
      return {
        path: path(user),
        headers: { authorization: `Bearer ${user.token}`, 'x-paas-tenant': user.tenantId, 'x-forwarded-for': '10.1.0.1' },
      };
    });

  await fillDatabase(databaseUrl, people, small.apps, small.builds);
  console.log('beside a bare Hono and pg handler     requests/s        p50 ms           p99 ms');
  for (const [name, path] of Object.entries(compared)) {
    const sent = requests(path);
    const [ours, bare]: [Measurement[], Measurement[]] = [[], []];
    for (let round = 0; round <= rounds; round += 1) {
      const [one, other] = [await measure(apiSocket, sent), await measure(bareSocket, sent)];
      // The first warms both up.
      if (round === 0) continue;
      ours.push(one);
      bare.push(other);
    }
    const [mine, theirs] = [middle(ours), middle(bare)];
    const columns = (['requestsPerSecond', 'p50', 'p99'] as const).map((key) => {
      const digits = key === 'requestsPerSecond' ? 0 : 1;
      return `${mine[key].toFixed(digits)} / ${theirs[key].toFixed(digits)}`.padEnd(17);
    });
    const ratios = `${(mine.requestsPerSecond / theirs.requestsPerSecond).toFixed(2)} of the requests, ${(mine.p99 / theirs.p99).toFixed(2)} of the p99`;
    console.log(`${name.padEnd(37)} ${columns.join(' ')} ${ratios}`);
  }

  const before = new Map<string, Measurement>();
  for (const [name, path] of Object.entries(scaled)) before.set(name, await repeat(requests(path)));
  await fillDatabase(databaseUrl, people, large.apps, large.builds);
  console.log(`\np99 ms with                            1,000 apps   100,000 apps and 1,000,000 builds`);
  for (const [name, path] of Object.entries(scaled)) {
    const [was, is] = [before.get(name)?.p99 ?? 0, (await repeat(requests(path))).p99];
    console.log(`${name.padEnd(38)} ${was.toFixed(1).padEnd(12)} ${is.toFixed(1).padEnd(8)} ${(is / was).toFixed(2)}`);
  }
} finally {
  bareServer.kill();
  await removePlatform(platform);
  await postgres.close();
  await rm(directory, { recursive: true, force: true });
}

async function repeat(sent: readonly Request[]): Promise<Measurement> {
  const measured: Measurement[] = [];
  for (let round = 0; round < rounds; round += 1) measured.push(await measure(apiSocket, sent));
  return middle(measured);
}
