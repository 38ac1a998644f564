import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { commitFiles, git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

let fixture: GitFixture;
let repositories: readonly [filled: RepositoryId, empty: RepositoryId];
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
  repositories = [fixture.newRepository(), fixture.newRepository()];
});
afterAll(async () => {
  await fixture.close();
});

interface Host {
  /** Holds the history `full` was made with. */
  url: string;
  /** Holds nothing yet. */
  emptyUrl: string;
}

interface Outcome {
  code: number;
  stderr: string;
}

/** Seven commits, one of them a merge. */
async function makeHistory(): Promise<string> {
  const path = await mkdtemp(join(fixture.directory, 'full-'));
  await git(fixture.directory, 'init', '-q', path);
  for (let i = 0; i < 4; i++) await commitFiles(path, { [`file-${i}.txt`]: `content ${i}\n` }, `commit ${i}`);
  await git(path, 'checkout', '-q', '-b', 'side', 'HEAD~1');
  for (let i = 0; i < 2; i++) await commitFiles(path, { [`side-${i}.txt`]: `side ${i}\n` }, `side ${i}`);
  await git(path, 'checkout', '-q', 'main');
  await git(path, 'merge', '-q', '-m', 'a merge', 'side');
  await git(path, 'tag', '-a', '-m', 'a tag', 'v1', 'HEAD~2');
  return path;
}

async function openOurs(full: string): Promise<Host> {
  const [filled, empty] = repositories;
  await git(full, 'push', '-q', fixture.server.url(filled), 'main', 'side', 'v1');
  return { url: fixture.server.url(filled), emptyUrl: fixture.server.url(empty) };
}

/** Stock git that checks what it is sent, as we do. */
async function openStock(full: string): Promise<Host> {
  const urls: string[] = [];
  for (const name of ['filled', 'empty']) {
    const path = await mkdtemp(join(fixture.directory, `${name}-`));
    await git(fixture.directory, 'init', '-q', '--bare', path);
    await git(path, 'config', 'transfer.fsckObjects', 'true');
    for (const allowed of ['allowFilter', 'allowAnySHA1InWant']) await git(path, 'config', `uploadpack.${allowed}`, 'true');
    urls.push(pathToFileURL(path).href);
  }
  const [url = '', emptyUrl = ''] = urls;
  await git(full, 'push', '-q', url, 'main', 'side', 'v1');
  return { url, emptyUrl };
}

async function clone(url: string, ...args: string[]): Promise<string> {
  const path = await mkdtemp(join(fixture.directory, 'clone-'));
  await git(fixture.directory, 'clone', '-q', ...args, url, path);
  return path;
}

const push = (path: string, ...args: string[]): Promise<Outcome> => tryGit(path, ['push', ...args]);

/** What a person does, and whether git lets it through. */
const forms: readonly [what: string, taken: boolean, run: (host: Host, full: string) => Promise<Outcome>][] = [
  [
    'a commit on top of a clone of depth 1',
    true,
    async ({ url }) => {
      const path = await clone(url, '--depth', '1');
      await commitFiles(path, { 'new.txt': 'new\n' });
      return await push(path, 'origin', 'main');
    },
  ],
  [
    'three commits and a new branch on top of a clone of depth 2',
    true,
    async ({ url }) => {
      const path = await clone(url, '--depth', '2');
      for (let i = 0; i < 3; i++) await commitFiles(path, { 'file-0.txt': `changed ${i}\n` });
      return await push(path, 'origin', 'main:refs/heads/three', 'main:refs/heads/again');
    },
  ],
  [
    'a commit on top of a clone since a time',
    true,
    async ({ url }) => {
      const path = await clone(url, '--shallow-since=2001-01-01');
      await commitFiles(path, { 'new.txt': 'since\n' });
      return await push(path, 'origin', 'main:refs/heads/since');
    },
  ],
  [
    'a commit on top of a clone without a tag and what is before it',
    true,
    async ({ url }) => {
      const path = await clone(url, '--shallow-exclude=v1');
      await commitFiles(path, { 'new.txt': 'exclude\n' });
      return await push(path, 'origin', 'main:refs/heads/exclude');
    },
  ],
  [
    'what is there already, under another name',
    true,
    async ({ url }) => await push(await clone(url, '--depth', '1'), 'origin', 'HEAD:refs/heads/same', 'HEAD:refs/tags/same'),
  ],
  [
    'a rewritten tip, by force',
    true,
    async ({ url }) => {
      const path = await clone(url, '--depth', '3');
      await git(path, 'reset', '-q', '--hard', 'HEAD~1');
      await commitFiles(path, { 'new.txt': 'rewritten\n' });
      return await push(path, '--force', 'origin', 'main:refs/heads/rewritten');
    },
  ],
  [
    'a merge with a branch fetched to a depth',
    true,
    async ({ url }) => {
      const path = await clone(url, '--depth', '1', '--no-single-branch');
      await git(path, 'merge', '-q', '--allow-unrelated-histories', '-X', 'ours', '-m', 'merged', 'origin/side');
      return await push(path, 'origin', 'main:refs/heads/merged');
    },
  ],
  ['the deletion of a branch', true, async ({ url }) => await push(await clone(url, '--depth', '1'), 'origin', ':side')],
  [
    'a commit on top of a clone without blobs',
    true,
    async ({ url }) => {
      const path = await clone(url, '--filter=blob:none');
      await commitFiles(path, { 'new.txt': 'partial\n' });
      return await push(path, 'origin', 'HEAD:refs/heads/partial');
    },
  ],
  [
    'a commit without its past in a clone of depth 1, to a repository that has all of it',
    true,
    async ({ url }, full) => {
      const path = await clone(pathToFileURL(full).href, '--depth', '1');
      await commitFiles(path, { 'new.txt': 'from elsewhere\n' });
      return await push(path, url, 'main:refs/heads/elsewhere');
    },
  ],
  [
    'a clone of depth 1 to an empty repository',
    false,
    async ({ emptyUrl }, full) => await push(await clone(pathToFileURL(full).href, '--depth', '1'), emptyUrl, 'main'),
  ],
  [
    'a commit on top of a clone of depth 2, to an empty repository',
    false,
    async ({ emptyUrl }, full) => {
      const path = await clone(pathToFileURL(full).href, '--depth', '2');
      await commitFiles(path, { 'new.txt': 'new\n' });
      return await push(path, emptyUrl, 'main');
    },
  ],
  [
    'the same once the rest was fetched',
    true,
    async ({ emptyUrl }, full) => {
      const path = await clone(pathToFileURL(full).href, '--depth', '1');
      await git(path, 'fetch', '-q', '--unshallow');
      return await push(path, emptyUrl, 'main');
    },
  ],
];

describe('from a shallow clone', () => {
  let full: string;
  let hosts: Host[];
  beforeAll(async () => {
    full = await makeHistory();
    hosts = [await openStock(full), await openOurs(full)];
  });

  it.each(forms)('%s: taken is %s, as by stock git', async (_what, taken, run) => {
    for (const [index, host] of hosts.entries()) {
      const { code, stderr } = await run(host, full);
      const outcome = { host: index === 0 ? 'stock' : 'ours', taken: code === 0 };
      expect(outcome, stderr).toMatchObject({ taken });
      if (!taken && index === 1) expect(stderr).toContain('git fetch --unshallow');
    }
  });

  it('a whole history of one commit is taken, where stock git sees only that the clone was shallow', async () => {
    const source = await mkdtemp(join(fixture.directory, 'single-'));
    await git(fixture.directory, 'init', '-q', source);
    await commitFiles(source, { 'only.txt': 'one\n' });
    const { code, stderr } = await push(
      await clone(pathToFileURL(source).href, '--depth', '1'),
      hosts[1]?.emptyUrl ?? '',
      'main:refs/heads/single',
    );
    expect({ code, stderr }).toMatchObject({ code: 0 });
  });

  it('leaves nothing behind but repositories that git fsck finds whole', async () => {
    for (const repository of repositories) {
      expect(await fixture.quarantined(repository)).toEqual([]);
      const { code, stderr } = await tryGit(await fixture.layOut(repository), ['fsck', '--full', '--strict']);
      expect({ code, stderr }).toMatchObject({ code: 0 });
    }
    expect(fixture.logged).toEqual([]);
  });
});
