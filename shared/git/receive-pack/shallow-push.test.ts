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
  /** Has the history of `full`. */
  url: string;
  /** Is empty. */
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

/** Stock git, which checks the objects that it receives, as we do. */
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

/** What a person pushes, and whether stock git accepts it. */
const forms: readonly [what: string, accepted: boolean, run: (host: Host, full: string) => Promise<Outcome>][] = [
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
    'an existing commit under another name',
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
    'a commit on top of a clone of depth 1, to another repository with the whole history',
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
    'the same after the rest was fetched',
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

  it.each(forms)('%s: accepted is %s, as by stock git', async (_what, accepted, run) => {
    for (const [index, host] of hosts.entries()) {
      const { code, stderr } = await run(host, full);
      const outcome = { host: index === 0 ? 'stock' : 'ours', accepted: code === 0 };
      expect(outcome, stderr).toMatchObject({ accepted });
      if (!accepted && index === 1) expect(stderr).toContain('git fetch --unshallow');
    }
  });

  it('accepts a history of one commit from a shallow clone, which stock git rejects', async () => {
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

  it('leaves only repositories that git fsck finds complete', async () => {
    for (const repository of repositories) {
      expect(await fixture.listQuarantines(repository)).toEqual([]);
      const { code, stderr } = await tryGit(await fixture.exportBare(repository), ['fsck', '--full', '--strict']);
      expect({ code, stderr }).toMatchObject({ code: 0 });
    }
    expect(fixture.logged).toEqual([]);
  });
});
