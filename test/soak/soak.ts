/**
 * `npm run test:soak -- [--minutes N] [--connections N] [--per-minute N]`: small pushes by stock git, one after the other
 * at an even pace, beside many SSH connections that are logged in and do nothing. Over SSH, git storage and
 * PostgreSQL, without builds. Prints the times of the pushes and what the server holds, minute by minute. Ends with 1 when
 * a push failed, an idle connection was lost, the p99 was above 3 s, or memory kept growing after the first tenth.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import ssh2 from 'ssh2';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { limits } from '#shared/limits.ts';
import { makeClientKey, openOurs } from '#test/bench/push/open-servers.ts';
import { residentBytes } from '#test/bench/push/process-tree.ts';
import { runChecked } from '#test/support/run-program.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    connections: { type: 'string', default: '500' },
    'per-minute': { type: 'string', default: '60' },
  },
});
const [minutes, connections, perMinute] = [values.minutes, values.connections, values['per-minute']].map(Number) as [
  number,
  number,
  number,
];
const allowedSeconds = 3;
const allowedGrowth = 1.1;

const directory = await mkdtemp(join(tmpdir(), 'paas-soak-'));
const key = await makeClientKey(directory);
const server = await openOurs(join(directory, 'server'), key.publicKey);
const idle = new Set<ssh2.Client>();
let lost = 0;
try {
  await soak();
} finally {
  for (const client of idle) client.removeAllListeners('close').destroy();
  await server.close();
  await rm(directory, { recursive: true, force: true });
}

/** A few at a time: the server rejects a flood of logins. */
async function connectIdle(): Promise<void> {
  while (idle.size < connections) {
    await Promise.all(Array.from({ length: Math.min(5, connections - idle.size) }, connectOne));
  }
}

async function connectOne(): Promise<void> {
  const { port } = new URL(server.url('any'));
  const client = new ssh2.Client();
  client.connect({
    host: '127.0.0.1',
    port: Number(port),
    username: 'git',
    privateKey: await readFile(key.file, 'utf8'),
    readyTimeout: 60_000,
  });
  await once(client, 'ready');
  const since = performance.now();
  idle.add(client);
  client.on('error', () => undefined);
  client.on('close', () => {
    idle.delete(client);
    // Nobody may be idle for ever. Whoever was for as long as is allowed comes back.
    if (performance.now() - since < limits.ssh.idleSeconds * 1000 - 5000) lost++;
    else connectOne().catch(() => lost++);
  });
}

async function push(place: string): Promise<number> {
  const ssh = `ssh -i ${key.file} -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes`;
  const env = { HOME: directory, GIT_SSH_COMMAND: ssh, GIT_CONFIG_NOSYSTEM: '1' };
  const started = performance.now();
  await runChecked('git', ['push', '-q', 'origin', 'main'], { cwd: place, env });
  return (performance.now() - started) / 1000;
}

async function soak(): Promise<void> {
  const place = join(directory, 'work');
  await git(directory, 'init', '-q', place);
  await commitFiles(
    place,
    Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`src/${i}.txt`, `content ${i}\n`.repeat(30)])),
  );
  await git(place, 'remote', 'add', 'origin', server.url('soak'));
  await push(place);
  await connectIdle();
  const [host = 0] = server.pids;
  const megabytes = (pids: readonly number[]): number => Math.round(residentBytes(pids) / 1024 / 1024);
  console.log(
    `${idle.size} idle connections; the server holds ${megabytes([host])} MiB, ${megabytes(server.pids)} with PostgreSQL`,
  );
  const seconds: number[] = [];
  const resident: number[] = [];
  const started = performance.now();
  const total = Math.round(minutes * perMinute);
  for (let number = 1; number <= total; number++) {
    await commitFiles(place, { [`src/${number % 100}.txt`]: `push ${number}\n` });
    seconds.push(await push(place));
    resident.push(residentBytes([host]));
    if (number % perMinute === 0)
      report(number / perMinute, seconds.slice(-perMinute), megabytes([host]), megabytes(server.pids));
    await wait(Math.max(0, started + (number * 60_000) / perMinute - performance.now()));
  }
  const took = (performance.now() - started) / 60_000;
  const tenth = Math.max(1, Math.floor(resident.length / 10));
  const growth = median(resident.slice(-tenth)) / median(resident.slice(tenth, 2 * tenth));
  const p99 = percentile(seconds, 0.99);
  console.log(
    `${seconds.length} pushes in ${took.toFixed(1)} min: median ${median(seconds).toFixed(2)} s, p99 ${p99.toFixed(2)} s, ` +
      `slowest ${Math.max(...seconds).toFixed(2)} s; memory × ${growth.toFixed(3)}; ${lost} idle connections lost`,
  );
  process.exitCode = p99 > allowedSeconds || growth > allowedGrowth || lost > 0 ? 1 : 0;
}

function report(minute: number, seconds: readonly number[], hostMegabytes: number, allMegabytes: number): void {
  console.log(
    `minute ${minute}: median ${median(seconds).toFixed(2)} s, slowest ${Math.max(...seconds).toFixed(2)} s, ` +
      `${hostMegabytes} MiB resident, ${allMegabytes} with PostgreSQL, ${idle.size} idle`,
  );
}

function percentile(numbers: readonly number[], share: number): number {
  return numbers.toSorted((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(numbers.length * share))] ?? 0;
}

function median(numbers: readonly number[]): number {
  return percentile(numbers, 0.5);
}
