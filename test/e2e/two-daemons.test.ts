import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { createServices } from '#deploy/control-plane.ts';
import { systemClock } from '#shared/clock.ts';
import { createFakeGitStorage } from '#shared/git/storage/fake-git-storage.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { createLog } from '#shared/log.ts';
import { openTestBucket, type TestBucket } from '#shared/object-store/testing/test-bucket.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { createCoreContext } from '#test/support/core/core-context.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { gitSshEnv, type KeyFile, makeKey, type Ran, run } from '#test/support/ssh/ssh-client.ts';
import type { SshServerStart } from '#test/support/ssh/ssh-server-process.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** How many pushes race in the long form of this test; undefined: in the short one. */
    racingPushes: number | undefined;
  }
}

const daemonPath = fileURLToPath(new URL('../support/ssh/ssh-server-process.ts', import.meta.url));
const racingPushes = inject('racingPushes') ?? 12;
const clients = 4;
const races = 2;
const refNames = ['refs/heads/main', 'refs/heads/topic', 'refs/notes/one', 'refs/tags/moving'];
const none = '0'.repeat(40);

describe.each(['a directory', 'an object store'])('two daemons that serve one repository, with its packs in %s', (kind) => {
  const running: ChildProcess[] = [];
  let database: TestDatabase;
  let place: TestBucket;
  let directory: string;
  let key: KeyFile;
  let appName: string;
  let ports: number[];

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-two-daemons-'));
    database = await createTestDatabase();
    place = await openTestBucket();
    const log = createLog('silent', () => undefined);
    await migrateJobs(database.pool, log);
    const storage = createFakeGitStorage({ directory: join(directory, 'unused'), log });
    const platform = createFakePlatform({ clock: systemClock });
    const context = await createCoreContext({ db: database.db, log, clock: systemClock, platform, git: storage });
    const services = createServices(context);
    const { user, tenant } = await services.accounts.signUp({ email: 'ada@example.com', password: 'correct horse' });
    const owner = await services.accounts.resolvePrincipal({ userId: user.id, email: user.email, requestedTenantId: tenant.id });
    key = await makeKey(directory, 'key', 'ed25519');
    await services.sshKeys.addKey(owner, { name: 'laptop', publicKey: key.publicKey });
    appName = (await services.apps.createApp(owner, {})).name;
    await storage.close();
    ports = await Promise.all(['one', 'other'].map(startDaemon));
  });

  afterAll(async () => {
    for (const daemon of running) {
      const ended = once(daemon, 'exit');
      daemon.kill('SIGKILL');
      await ended;
    }
    await place.close();
    await database.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function startDaemon(name: string): Promise<number> {
    const inStore = kind === 'an object store';
    const order: SshServerStart = {
      databaseUrl: database.url,
      sshDirectory: join(directory, 'ssh'),
      // Nothing in common but the store; or nothing but the directory.
      gitDirectory: join(directory, inStore ? `git-${name}` : 'git'),
      store: inStore ? { ...place.account, prefix: place.prefix } : undefined,
    };
    const daemon = fork(daemonPath, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    running.push(daemon);
    daemon.send(order);
    const [{ port }] = (await once(daemon, 'message')) as [{ port: number }];
    return port;
  }

  const portOf = (n: number): number => ports[n % ports.length] ?? 0;
  const urlOf = (n: number): string => `ssh://git@127.0.0.1:${portOf(n)}/${appName}.git`;

  const tryGit = (cwd: string, n: number, ...args: string[]): Promise<Ran> =>
    run('git', ['-c', 'gc.auto=0', ...args], { cwd, env: gitSshEnv(portOf(n), key) });

  async function git(cwd: string, n: number, ...args: string[]): Promise<string> {
    const { status, stdout, stderr } = await tryGit(cwd, n, ...args);
    if (status !== 0) throw new Error(`git ${args.join(' ')} exited with ${status}:\n${stderr}`);
    return stdout.trim();
  }

  async function newClient(name: string, n: number): Promise<string> {
    const client = join(directory, name);
    await git(directory, n, 'init', '-q', '--bare', client);
    await git(client, n, 'remote', 'add', 'origin', urlOf(n));
    return client;
  }

  /** A commit with a file of its own on top of another. */
  async function commitOn(client: string, parent: string | undefined, text: string): Promise<string> {
    const { stdout: blob } = await run('git', ['hash-object', '-w', '--stdin'], { cwd: client, input: text });
    const { stdout: tree } = await run('git', ['mktree'], { cwd: client, input: `100644 blob ${blob.trim()}\tfile\n` });
    return git(client, 0, 'commit-tree', tree.trim(), ...(parent === undefined ? [] : ['-p', parent]), '-m', text);
  }

  async function readRefs(n: number): Promise<Map<string, string>> {
    const lines = (await git(directory, n, 'ls-remote', urlOf(n))).split('\n').filter((line) => line.includes('refs/'));
    return new Map(lines.map((line) => [line.split('\t')[1] ?? '', line.split('\t')[0] ?? '']));
  }

  it('show the same host keys', async () => {
    const keys = await Promise.all(ports.map((port) => run('ssh-keyscan', ['-p', String(port), '127.0.0.1'])));
    const [one, other] = keys.map(({ stdout }) => stdout.replace(/^\S+ /gm, '').split('\n').toSorted());
    expect(one).toEqual(other);
    expect(one?.length).toBeGreaterThan(2);
  });

  it('let one of two pushes win, and tell the other to fetch first', async () => {
    const pair = [await newClient('pair-0', 0), await newClient('pair-1', 1)] as const;
    let tip: string | undefined;
    for (let race = 0; race < races; race++) {
      const commits = await Promise.all(pair.map((client, n) => commitOn(client, tip, `race ${race} of ${n}`)));
      const ends = await Promise.all(
        pair.map((client, n) => tryGit(client, n, 'push', '-o', 'detach', 'origin', `${commits[n]}:refs/heads/main`)),
      );
      expect(ends.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([0, 1]);
      const winner = ends[0]?.status === 0 ? 0 : 1;
      expect(ends[1 - winner]?.stderr).toContain('fetch first');
      tip = commits[winner];
      for (const n of [0, 1]) expect((await readRefs(n)).get('refs/heads/main')).toBe(tip);
      await Promise.all(pair.map((client, n) => git(client, n, 'fetch', '-q', 'origin', 'refs/heads/main')));
    }
  });

  it(`lose nothing of ${racingPushes} pushes to ${refNames.length} refs that race`, async () => {
    const accepted = new Map<string, string[]>(refNames.map((name) => [name, []]));
    let begun = 0;
    let refused = 0;
    const push = async (n: number): Promise<void> => {
      const client = await newClient(`racer-${n}`, n);
      const known = await readRefs(n);
      while (begun < racingPushes) {
        const number = begun++;
        const name = refNames[Math.floor(Math.random() * refNames.length)] ?? '';
        const old = known.get(name);
        if (old !== undefined) await git(client, n, 'fetch', '-q', 'origin', old);
        const commit = await commitOn(client, old, `push ${number} of ${n}`);
        // What the client expects is stated, so that it asks, and the daemons decide.
        const lease = `--force-with-lease=${name}:${old ?? none}`;
        const { status, stderr } = await tryGit(
          client,
          n + number,
          'push',
          '-o',
          'detach',
          lease,
          urlOf(n + number),
          `${commit}:${name}`,
        );
        if (status === 0) {
          accepted.get(name)?.push(commit);
          known.set(name, commit);
          continue;
        }
        expect(stderr).toMatch(/fetch first|stale info/);
        refused++;
        for (const [ref, tip] of await readRefs(n)) known.set(ref, tip);
      }
    };
    await Promise.all(Array.from({ length: clients }, (_, n) => push(n)));

    const [one, other] = [await readRefs(0), await readRefs(1)];
    expect(one).toEqual(other);
    const total = [...accepted.values()].reduce((sum, commits) => sum + commits.length, 0);
    expect(total + refused).toBe(racingPushes);
    for (const n of [0, 1]) {
      const mirror = join(directory, `mirror-${n}`);
      await git(directory, n, 'clone', '-q', '--mirror', urlOf(n), mirror);
      await git(mirror, n, 'fsck', '--full', '--strict');
      for (const [name, commits] of accepted) {
        if (commits.length === 0) continue;
        const history = new Set((await git(mirror, n, 'rev-list', name)).split('\n'));
        expect(commits.filter((commit) => !history.has(commit))).toEqual([]);
      }
    }
  });
});
