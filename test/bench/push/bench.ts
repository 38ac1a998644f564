/**
 * Compares pushes and clones of our server with those of OpenSSH and git on this machine: npm run bench:push -- [options]
 *
 *   --case NAME           only this case; may be repeated. small, middle, large, at-once, after-N (one more push to a repository
 *                         that had N, and a clone of it; 2,000 take half an hour), or the path of a bare repository
 *   --rounds N            rounds of each case, in each of which every server has a turn (5; three times as many for small pushes)
 *   --repositories DIR    where generated repositories are kept for the next run; generating them takes longer than pushing them
 *
 * git is measured twice: with its defaults, and with receive.fsckObjects, which does what we do with every push.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { compare, type Measured, measure } from '#test/bench/push/compare.ts';
import { makeRepository, type RepositoryShape } from '#test/bench/push/make-repository.ts';
import { type BenchServer, makeClientKey, openOurs, openTheirs, requireSshd } from '#test/bench/push/open-servers.ts';

const shapes: Record<string, RepositoryShape> = {
  each: { files: 500, commits: 100, changesEach: 5 },
  middle: { files: 4000, commits: 2500, changesEach: 14 },
  large: { files: 9000, commits: 5400, changesEach: 14, largeFiles: { count: 12, bytes: 5_000_000 } },
};

const { values: options } = parseArgs({
  options: {
    case: { type: 'string', multiple: true, default: ['small', 'after-2', 'after-200', 'middle', 'at-once', 'large'] },
    rounds: { type: 'string', default: '5' },
    repositories: { type: 'string' },
  },
});
await requireSshd();
const rounds = Number(options.rounds);
const directory = await mkdtemp(join(tmpdir(), 'paas-bench-push-'));
const repositoryDirectory = options.repositories ?? directory;
const key = await makeClientKey(directory);
const sshCommand = `ssh -i ${key.file} -F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes`;
const ours = await openOurs(join(directory, 'ours'), key.publicKey);
const theirs = await openTheirs(join(directory, 'theirs'), key.publicKey);
const servers: readonly BenchServer[] = [ours, theirs.byDefault, theirs.checking];
let repositories = 0;

async function close(): Promise<void> {
  await theirs.close();
  await ours.close();
  await rm(directory, { recursive: true, force: true });
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void close().finally(() => process.exit(1)));

try {
  await mkdir(repositoryDirectory, { recursive: true });
  for (const name of options.case) {
    if (name === 'small') await benchSmallPushes();
    else if (name === 'at-once') await benchAtOnce(20);
    else if (/^after-\d+$/.test(name)) await benchAfterPushes(Number(name.slice('after-'.length)));
    else await benchRepository(name, name in shapes ? await generatedRepository(name) : name);
  }
} finally {
  await close();
}

/** Pushes of one commit to a repository of a hundred files. */
async function benchSmallPushes(): Promise<void> {
  const places = new Map<BenchServer, string>();
  for (const [number, server] of servers.entries()) {
    const place = join(directory, `small-${number}`);
    await git(directory, 'init', '-q', place);
    const files = Array.from({ length: 100 }, (_, i) => [`src/file-${i}.txt`, `content ${i}\n`.repeat(30)]);
    await commitFiles(place, Object.fromEntries(files) as Record<string, string>);
    await git(place, 'remote', 'add', 'origin', newRepository(server));
    await runGit(place, ['push', '-q', 'origin', 'main']);
    places.set(server, place);
  }
  await compare('small push', servers, rounds * 3, async (server, round) => {
    const place = places.get(server) ?? '';
    await commitFiles(place, { [`src/file-${round}.txt`]: `round ${round}\n` });
    return [await measure(server, () => runGit(place, ['push', '-q', 'origin', 'main']))];
  });
}

/** Maintenance runs meanwhile: ours by its job, and `git gc --auto` after each push, as on git hosts. */
async function benchAfterPushes(count: number): Promise<void> {
  const places = new Map<BenchServer, { place: string; url: string }>();
  const compared = [ours, theirs.byDefault];
  for (const server of compared) {
    const place = join(directory, `after-${count}-${compared.indexOf(server)}`);
    const url = newRepository(server);
    await git(directory, 'init', '-q', place);
    const files = Array.from({ length: 100 }, (_, i) => [`src/file-${i}.txt`, `content ${i}\n`.repeat(30)]);
    await commitFiles(place, Object.fromEntries(files) as Record<string, string>);
    for (let i = 1; i <= count; i++) {
      await commitFiles(place, { [`src/file-${i % 100}.txt`]: `push ${i}\n`.repeat(30) });
      await runGit(place, ['push', '-q', url, 'main']);
      server.collectGarbage(`bench-${repositories}`);
    }
    places.set(server, { place, url });
  }
  await compare([`push after ${count} pushes`, `clone after ${count} pushes`], compared, rounds * 3, async (server, round) => {
    const { place, url } = places.get(server) ?? { place: '', url: '' };
    const copy = join(directory, `copy-after-${count}`);
    await commitFiles(place, { 'round.txt': `round ${round}\n` });
    const pushed = await measure(server, () => runGit(place, ['push', '-q', url, 'main']));
    const cloned = await measure(server, () => runGit(directory, ['clone', '-q', '--bare', url, copy]));
    await rm(copy, { recursive: true, force: true });
    return [pushed, cloned];
  });
}

/** A first push of a whole repository, then a fresh clone. */
async function benchRepository(name: string, path: string): Promise<void> {
  const sizes = await git(path, 'count-objects', '-v');
  const [objects, kilobytes] = ['in-pack', 'size-pack'].map((field) => new RegExp(`${field}: (\\d+)`).exec(sizes)?.[1]);
  const title = `${name}: ${objects} objects, ${Math.round(Number(kilobytes) / 1024)} MiB`;
  await compare([`push ${title}`, `clone ${title}`], servers, rounds, async (server): Promise<Measured[]> => {
    const url = newRepository(server);
    const copy = join(directory, `copy-${repositories}`);
    const pushed = await measure(server, () => runGit(path, ['push', '-q', url, '+refs/heads/*:refs/heads/*']));
    const cloned = await measure(server, () => runGit(directory, ['clone', '-q', '--bare', url, copy]));
    await rm(copy, { recursive: true, force: true });
    return [pushed, cloned];
  });
}

/** Concurrent pushes of two thousand objects, each to a new repository. */
async function benchAtOnce(count: number): Promise<void> {
  const path = await generatedRepository('each');
  await compare(`${count} pushes at once`, servers, rounds, async (server) => {
    const urls = Array.from({ length: count }, () => newRepository(server));
    const pushAll = (): Promise<unknown> => Promise.all(urls.map((url) => runGit(path, ['push', '-q', url, 'main'])));
    return [await measure(server, pushAll)];
  });
}

async function generatedRepository(name: string): Promise<string> {
  const path = join(repositoryDirectory, `${name}.git`);
  const shape = shapes[name];
  if (shape !== undefined && (await stat(path).catch(() => undefined)) === undefined) await makeRepository(path, shape);
  return path;
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
