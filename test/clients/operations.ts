import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Address, GitClient } from '#test/clients/client.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { type User, visit } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';

/** One app, and a working copy of it that only local git commands and the client at hand touch. */
export interface Ground {
  platform: RunningPlatform;
  user: User;
  app: string;
  server: Address;
  client: GitClient;
  directory: string;
  /** Refs that one push brings. */
  refs: number;
}

/** In this order: each begins where the one before ended. */
export const operations: Readonly<Record<string, (ground: Ground) => Promise<void>>> = {
  'push main': async (ground) => {
    await commit(ground, { ...nodeApp(`by ${ground.client.name}`), 'notes.txt': 'first\n' });
    await push(ground, 'refs/heads/main:refs/heads/main');
    const { body } = await visit(ground.platform, ground.app);
    hold(body === `by ${ground.client.name}`, `the app answers ${JSON.stringify(body)}`);
  },
  clone: async (ground) => {
    const into = join(await mkdtemp(join(ground.user.home, 'clone-')), 'copy');
    await ground.client.clone(ground.server, into);
    hold((await readFile(join(into, 'notes.txt'), 'utf8')) === 'first\n', 'the working copy is whole');
    await git(into, 'fsck', '--full', '--strict');
  },
  'new branch': async (ground) => {
    await git(ground.directory, 'checkout', '-q', '-b', 'feature');
    await commit(ground, { 'notes.txt': 'second\n' });
    await push(ground, 'refs/heads/feature:refs/heads/feature');
    await holdRef(ground, 'refs/heads/feature', 'feature');
  },
  fetch: async (ground) => {
    const elsewhere = await mkdtemp(join(ground.user.home, 'elsewhere-'));
    await git(elsewhere, 'clone', '-q', '--no-local', '--single-branch', '--branch', 'main', ground.directory, elsewhere);
    await git(elsewhere, 'config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
    await ground.client.fetch(ground.server, elsewhere, ['refs/heads/feature:refs/heads/fetched']);
    const head = await git(ground.directory, 'rev-parse', 'feature');
    await git(elsewhere, 'cat-file', '-e', head);
    await git(elsewhere, 'fsck', '--full', '--strict');
  },
  'force push': async (ground) => {
    await git(ground.directory, 'commit', '-q', '--amend', '-m', 'Rewritten');
    await push(ground, '+refs/heads/feature:refs/heads/feature');
    await holdRef(ground, 'refs/heads/feature', 'feature');
  },
  delete: async (ground) => {
    await push(ground, ':refs/heads/feature');
    await holdRef(ground, 'refs/heads/feature', undefined);
  },
  tags: async (ground) => {
    await git(ground.directory, 'tag', '-a', '-m', 'Annotated', 'v1', 'main');
    await git(ground.directory, 'tag', 'v1-light', 'main');
    await push(ground, 'refs/tags/v1:refs/tags/v1', 'refs/tags/v1-light:refs/tags/v1-light');
    await holdRef(ground, 'refs/tags/v1', 'v1');
    await holdRef(ground, 'refs/tags/v1-light', 'v1-light');
  },
  'many refs': async (ground) => {
    const names = Array.from({ length: ground.refs }, (_, i) => `refs/tags/many/${i}`);
    const input = names.map((name) => `create ${name} refs/heads/main\n`).join('');
    await runChecked('git', ['update-ref', '--stdin'], { cwd: ground.directory, input });
    const each = names.map((name) => `${name}:${name}`);
    await push(ground, ...(ground.client.patterns ? ['refs/tags/many/*:refs/tags/many/*'] : each));
    const into = join(await mkdtemp(join(ground.user.home, 'clone-')), 'copy');
    await ground.client.clone(ground.server, into);
    hold((await listRefs(ground)).size >= ground.refs, 'all refs are there');
  },
};

export async function createGround(
  platform: RunningPlatform,
  user: User,
  client: GitClient,
  transport: Address['transport'],
  app: string,
  refs: number,
): Promise<Ground> {
  const { push_url } = await user.createApp(app);
  const url = transport === 'ssh' ? push_url : `http://localhost:${platform.httpPort}/${app}.git`;
  const directory = await mkdtemp(join(user.home, 'client-'));
  await git(directory, 'init', '-q', '-b', 'main');
  return {
    platform,
    user,
    app,
    client,
    directory,
    refs,
    server: { transport, url, keyFile: join(user.home, 'id_ed25519'), token: user.token },
  };
}

async function push({ client, server, directory }: Ground, ...refspecs: string[]): Promise<void> {
  await client.push(server, directory, refspecs);
}

async function commit({ directory }: Ground, files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) await writeFile(join(directory, path), content);
  await git(directory, 'add', '-A');
  await git(directory, 'commit', '-q', '-m', 'Change');
}

/** Of the working copy only: what goes over the network is the client's. */
async function git(cwd: string, ...args: string[]): Promise<string> {
  const name = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.com' };
  const env = { ...name, GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.com', GIT_CONFIG_GLOBAL: '/dev/null' };
  return (await runChecked('git', args, { cwd, env })).stdout.trim();
}

async function listRefs({ user, app, platform }: Ground): Promise<ReadonlyMap<string, string>> {
  const listed = await runChecked('git', ['ls-remote', `http://git:${user.token}@localhost:${platform.httpPort}/${app}.git`]);
  return new Map(listed.stdout.split('\n').map((line) => line.split('\t').toReversed() as [string, string]));
}

async function holdRef(ground: Ground, name: string, local: string | undefined): Promise<void> {
  const wanted = local === undefined ? undefined : await git(ground.directory, 'rev-parse', local);
  const found = (await listRefs(ground)).get(name);
  hold(found === wanted, `${name} is at ${found}, not ${wanted}`);
}

function hold(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}
