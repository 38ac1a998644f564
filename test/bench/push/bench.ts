/**
 * Pushes and clones, ours against OpenSSH's sshd + git on this machine, in pairs within one run: npm run bench:push.
 * Arguments: `--quick` leaves the largest repository out, `--checked` has git check objects as we always do
 * (receive.fsckObjects), any other is the path of a bare repository to push as well.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { makeRepository } from '#test/bench/push/make-repository.ts';
import { type BenchServer, makeClientKey, openOurs, openTheirs } from '#test/bench/push/open-servers.ts';
import { measureTree } from '#test/bench/push/process-tree.ts';

interface Figures {
  wallSeconds: number;
  cpuSeconds: number;
  peakBytes: number;
  delayMilliseconds: number | undefined;
}

const args = process.argv.slice(2);
const paths = args.filter((arg) => !arg.startsWith('--'));
const directory = await mkdtemp(join(tmpdir(), 'paas-bench-push-'));
const key = await makeClientKey(directory);
const sshCommand = `ssh -i ${key.file} -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes`;
const ours = await openOurs(join(directory, 'ours'), key.publicKey);
const theirs = await openTheirs(join(directory, 'theirs'), key.publicKey, args.includes('--checked'));
let repositories = 0;

try {
  await benchSmallPushes();
  const made = join(directory, 'middle.git');
  await makeRepository(made, { files: 4000, commits: 2500, changesEach: 14 });
  await benchRepository('middle', made);
  await benchAtOnce(20);
  if (!args.includes('--quick')) {
    const large = join(directory, 'large.git');
    await makeRepository(large, { files: 9000, commits: 5400, changesEach: 14, largeFiles: { count: 12, bytes: 5_000_000 } });
    await benchRepository('large', large);
  }
  for (const path of paths) await benchRepository(path, path);
} finally {
  await theirs.close();
  await ours.close();
  await rm(directory, { recursive: true, force: true });
}

/** One commit on a repository of a hundred files, pushed again and again. */
async function benchSmallPushes(): Promise<void> {
  const rounds = 15;
  const places = new Map<BenchServer, string>();
  for (const server of [ours, theirs]) {
    const place = join(directory, `small-${server === ours ? 'ours' : 'theirs'}`);
    await git(directory, 'init', '-q', place);
    const files = Array.from({ length: 100 }, (_, i) => [`src/file-${i}.txt`, `content ${i}\n`.repeat(30)]);
    await commitFiles(place, Object.fromEntries(files) as Record<string, string>);
    await git(place, 'remote', 'add', 'origin', newRepository(server));
    await runGit(place, ['push', '-q', 'origin', 'main']);
    places.set(server, place);
  }
  const found = new Map<BenchServer, Figures[]>([
    [ours, []],
    [theirs, []],
  ]);
  for (let round = 0; round < rounds; round++) {
    for (const [server, place] of round % 2 === 0 ? [...places] : [...places].toReversed()) {
      await commitFiles(place, { [`src/file-${round}.txt`]: `round ${round}\n` });
      found.get(server)?.push(await measure(server, () => runGit(place, ['push', '-q', 'origin', 'main'])));
    }
  }
  print('small push (median)', median(found.get(ours) ?? []), median(found.get(theirs) ?? []));
}

/** A first push of everything, then a fresh clone. */
async function benchRepository(name: string, path: string): Promise<void> {
  const sizes = await git(path, 'count-objects', '-v');
  const [objects, kilobytes] = ['in-pack', 'size-pack'].map((field) => new RegExp(`${field}: (\\d+)`).exec(sizes)?.[1]);
  const pushed: Figures[][] = [[], []];
  const cloned: Figures[][] = [[], []];
  const rounds = 2;
  for (let round = 0; round < rounds; round++) {
    for (const [side, server] of [ours, theirs].entries()) {
      const url = newRepository(server);
      pushed[side]?.push(await measure(server, () => runGit(path, ['push', '-q', url, '+refs/heads/*:refs/heads/*'])));
      const copy = join(directory, `copy-${repositories}`);
      cloned[side]?.push(await measure(server, () => runGit(directory, ['clone', '-q', '--bare', url, copy])));
      await rm(copy, { recursive: true, force: true });
    }
  }
  const size = `${objects} objects, ${Math.round(Number(kilobytes) / 1024)} MB`;
  print(`${name} push (${size})`, median(pushed[0] ?? []), median(pushed[1] ?? []));
  print(`${name} clone`, median(cloned[0] ?? []), median(cloned[1] ?? []));
}

/** A repository of a thousand objects to as many new repositories at the same time. */
async function benchAtOnce(count: number): Promise<void> {
  const path = join(directory, 'each.git');
  await makeRepository(path, { files: 500, commits: 100, changesEach: 5 });
  const found: Figures[] = [];
  for (const server of [ours, theirs]) {
    const urls = Array.from({ length: count }, () => newRepository(server));
    found.push(
      await measure(server, async () => void (await Promise.all(urls.map((url) => runGit(path, ['push', '-q', url, 'main']))))),
    );
  }
  print(`${count} pushes at once`, median(found.slice(0, 1)), median(found.slice(1)));
}

function newRepository(server: BenchServer): string {
  const name = `bench-${++repositories}`;
  server.create(name);
  return server.url(name);
}

async function runGit(cwd: string, gitArgs: readonly string[]): Promise<void> {
  const env = { PATH: process.env['PATH'], HOME: directory, GIT_SSH_COMMAND: sshCommand, GIT_CONFIG_NOSYSTEM: '1' };
  const [code] = (await once(spawn('git', gitArgs, { cwd, env, stdio: ['ignore', 'inherit', 'inherit'] }), 'exit')) as [number];
  if (code !== 0) throw new Error(`git ${gitArgs.join(' ')} exited with ${code}`);
}

async function measure(server: BenchServer, work: () => Promise<void>): Promise<Figures> {
  await server.eventLoopDelay();
  let wallSeconds = 0;
  const use = await measureTree(server.pids, async () => {
    const start = performance.now();
    await work();
    wallSeconds = (performance.now() - start) / 1000;
  });
  return { ...use, wallSeconds, delayMilliseconds: await server.eventLoopDelay() };
}

function median(all: readonly Figures[]): Figures {
  const middle = (values: readonly number[]): number =>
    values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0;
  return {
    wallSeconds: middle(all.map(({ wallSeconds }) => wallSeconds)),
    cpuSeconds: middle(all.map(({ cpuSeconds }) => cpuSeconds)),
    peakBytes: middle(all.map(({ peakBytes }) => peakBytes)),
    delayMilliseconds: middle(all.map(({ delayMilliseconds }) => delayMilliseconds ?? 0)),
  };
}

function print(label: string, mine: Figures, other: Figures): void {
  const pair = (of: (figures: Figures) => number, digits: number): string =>
    `${of(mine).toFixed(digits)} / ${of(other).toFixed(digits)} = ${(of(mine) / of(other)).toFixed(2)}`;
  const line = [
    label.padEnd(44),
    `wall s ${pair(({ wallSeconds }) => wallSeconds, 2)}`,
    `server cpu s ${pair(({ cpuSeconds }) => cpuSeconds, 2)}`,
    `peak MB ${pair(({ peakBytes }) => peakBytes / 1e6, 0)}`,
    `loop p99 ms ${(mine.delayMilliseconds ?? 0).toFixed(0)}`,
  ];
  process.stdout.write(`${line.join('   ')}\n`);
}
