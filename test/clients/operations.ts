import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Address, GitClient } from '#test/clients/client.ts';
import { nodeApp } from '#test/support/builds/sample-apps.ts';
import type { RunningPlatform } from '#test/support/platform/running-platform.ts';
import { type User, visit } from '#test/support/platform/user.ts';
import { runChecked } from '#test/support/run-program.ts';

/** An app, and a working copy of it that only local git commands and the client change. */
export interface Fixture {
  platform: RunningPlatform;
  user: User;
  app: string;
  server: Address;
  client: GitClient;
  directory: string;
  /** How many refs one push creates. */
  refs: number;
}

/** Run in this order: each starts with the result of the one before. */
export const operations: Readonly<Record<string, (fixture: Fixture) => Promise<void>>> = {
  'push main': async (fixture) => {
    await commit(fixture, { ...nodeApp(`by ${fixture.client.name}`), 'notes.txt': 'first\n' });
    await push(fixture, 'refs/heads/main:refs/heads/main');
    const { body } = await visit(fixture.platform, fixture.app);
    assertTrue(body === `by ${fixture.client.name}`, `the app answers ${JSON.stringify(body)}`);
  },
  clone: async (fixture) => {
    const into = join(await mkdtemp(join(fixture.user.home, 'clone-')), 'copy');
    await fixture.client.clone(fixture.server, into);
    assertTrue((await readFile(join(into, 'notes.txt'), 'utf8')) === 'first\n', 'the working copy is whole');
    await git(into, 'fsck', '--full', '--strict');
  },
  'new branch': async (fixture) => {
    await git(fixture.directory, 'checkout', '-q', '-b', 'feature');
    await commit(fixture, { 'notes.txt': 'second\n' });
    await push(fixture, 'refs/heads/feature:refs/heads/feature');
    await assertRef(fixture, 'refs/heads/feature', 'feature');
  },
  fetch: async (fixture) => {
    const elsewhere = await mkdtemp(join(fixture.user.home, 'elsewhere-'));
    await git(elsewhere, 'clone', '-q', '--no-local', '--single-branch', '--branch', 'main', fixture.directory, elsewhere);
    await git(elsewhere, 'config', 'remote.origin.fetch', '+refs/heads/*:refs/remotes/origin/*');
    await fixture.client.fetch(fixture.server, elsewhere, ['refs/heads/feature:refs/heads/fetched']);
    const head = await git(fixture.directory, 'rev-parse', 'feature');
    await git(elsewhere, 'cat-file', '-e', head);
    await git(elsewhere, 'fsck', '--full', '--strict');
  },
  'force push': async (fixture) => {
    await git(fixture.directory, 'commit', '-q', '--amend', '-m', 'Rewritten');
    await push(fixture, '+refs/heads/feature:refs/heads/feature');
    await assertRef(fixture, 'refs/heads/feature', 'feature');
  },
  delete: async (fixture) => {
    await push(fixture, ':refs/heads/feature');
    await assertRef(fixture, 'refs/heads/feature', undefined);
  },
  tags: async (fixture) => {
    await git(fixture.directory, 'tag', '-a', '-m', 'Annotated', 'v1', 'main');
    await git(fixture.directory, 'tag', 'v1-light', 'main');
    await push(fixture, 'refs/tags/v1:refs/tags/v1', 'refs/tags/v1-light:refs/tags/v1-light');
    await assertRef(fixture, 'refs/tags/v1', 'v1');
    await assertRef(fixture, 'refs/tags/v1-light', 'v1-light');
  },
  'many refs': async (fixture) => {
    const names = Array.from({ length: fixture.refs }, (_, i) => `refs/tags/many/${i}`);
    const input = names.map((name) => `create ${name} refs/heads/main\n`).join('');
    await runChecked('git', ['update-ref', '--stdin'], { cwd: fixture.directory, input });
    const each = names.map((name) => `${name}:${name}`);
    await push(fixture, ...(fixture.client.patterns ? ['refs/tags/many/*:refs/tags/many/*'] : each));
    const into = join(await mkdtemp(join(fixture.user.home, 'clone-')), 'copy');
    await fixture.client.clone(fixture.server, into);
    assertTrue((await listRefs(fixture)).size >= fixture.refs, 'all refs are there');
  },
};

/** Creates the app, and an empty working copy. */
export async function createFixture({
  platform,
  user,
  client,
  transport,
  app,
  refs,
}: Omit<Fixture, 'server' | 'directory'> & { transport: Address['transport'] }): Promise<Fixture> {
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

async function push({ client, server, directory }: Fixture, ...refspecs: string[]): Promise<void> {
  await client.push(server, directory, refspecs);
}

async function commit({ directory }: Fixture, files: Record<string, string>): Promise<void> {
  for (const [path, content] of Object.entries(files)) await writeFile(join(directory, path), content);
  await git(directory, 'add', '-A');
  await git(directory, 'commit', '-q', '-m', 'Change');
}

/** Runs git in a working copy. It never uses the network: only the client does. */
async function git(cwd: string, ...args: string[]): Promise<string> {
  const name = { GIT_AUTHOR_NAME: 'Ada', GIT_AUTHOR_EMAIL: 'ada@example.com' };
  const env = { ...name, GIT_COMMITTER_NAME: 'Ada', GIT_COMMITTER_EMAIL: 'ada@example.com', GIT_CONFIG_GLOBAL: '/dev/null' };
  return (await runChecked('git', args, { cwd, env })).stdout.trim();
}

async function listRefs({ user, app, platform }: Fixture): Promise<ReadonlyMap<string, string>> {
  const listed = await runChecked('git', ['ls-remote', `http://git:${user.token}@localhost:${platform.httpPort}/${app}.git`]);
  return new Map(listed.stdout.split('\n').map((line) => line.split('\t').toReversed() as [string, string]));
}

async function assertRef(fixture: Fixture, name: string, local: string | undefined): Promise<void> {
  const wanted = local === undefined ? undefined : await git(fixture.directory, 'rev-parse', local);
  const found = (await listRefs(fixture)).get(name);
  assertTrue(found === wanted, `${name} is at ${found}, not ${wanted}`);
}

function assertTrue(condition: boolean, what: string): void {
  if (!condition) throw new Error(what);
}
