import { chmod, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GitBrowser } from '#shared/git/git-storage.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

let fixture: GitFixture;
let browser: GitBrowser;
let id: RepositoryId;
let work: string;
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
  browser = fixture.storage.browser;
  id = fixture.newRepository();
  work = await fixture.workingCopy(id);
});
afterAll(async () => {
  await fixture.close();
  expect(fixture.logged).toEqual([]);
});

const revParse = async (revision: string) => (await git(work, 'rev-parse', revision)) as ObjectId;
const commit = async (files: Record<string, string>) => (await commitFiles(work, files)) as ObjectId;
const push = () => git(work, 'push', '-q', '--force', 'origin', 'HEAD:main');

describe('a commit', () => {
  it('is read as git shows it', async () => {
    await commit({ a: '1' });
    const dates = '2024-02-03T04:05:06-07:30';
    const author = ['--author', 'Åsa Ü <asa@example.com>', '--date', dates];
    await git(work, 'commit', '-q', '--allow-empty', ...author, '-m', 'Title\n\nA body\nof two lines');
    await push();
    const head = await revParse('HEAD');
    const facts = await browser.readCommit(id, head);
    expect(facts).toMatchObject({
      oid: head,
      tree: await revParse('HEAD^{tree}'),
      parents: [await revParse('HEAD~1')],
      message: 'Title\n\nA body\nof two lines\n',
      author: { name: 'Åsa Ü', email: 'asa@example.com', at: new Date(dates), utcOffsetMinutes: -450 },
    });
    expect(facts.committer.at.getTime()).toBe(Number(await git(work, 'log', '-1', '--format=%ct')) * 1000);
  });

  it('that does not exist, or is no commit, is not found', async () => {
    for (const oid of ['4'.repeat(40) as ObjectId, await revParse('HEAD^{tree}'), await revParse('HEAD:a')])
      await expect(browser.readCommit(id, oid)).rejects.toMatchObject({ code: 'not_found' });
  });

  it('with a message that is too large to be shown is refused', async () => {
    const file = join(work, '.git/message');
    const messages = async (bytes: number): Promise<ObjectId> => {
      await writeFile(file, `${'x'.repeat(99)}\n`.repeat(bytes / 100));
      await git(work, 'commit', '-q', '--allow-empty', '-F', file);
      return revParse('HEAD');
    };
    const [long, tooLong] = [await messages(1_000_000), await messages(5_000_000)];
    await push();
    expect((await browser.readCommit(id, long)).message).toHaveLength(1_000_000);
    await expect(browser.readCommit(id, tooLong)).rejects.toMatchObject({ code: 'validation_failed' });
    await git(work, 'reset', '-q', '--soft', 'HEAD~2');
  });
});

describe('a path of a commit', () => {
  let head: ObjectId;
  beforeAll(async () => {
    await commit({ 'src/run': '#!/bin/sh', 'src/deep/er/file': 'hello', large: 'x'.repeat(limits.browsing.fileBytes + 1) });
    await chmod(join(work, 'src/run'), 0o755);
    await symlink('../a', join(work, 'src/link'));
    await git(work, 'update-index', '--add', '--cacheinfo', `160000,${'3'.repeat(40)},module`);
    await git(work, 'add', 'src');
    await git(work, 'commit', '-qm', 'Modes');
    await push();
    head = await revParse('HEAD');
  });

  it.each(['', '/', 'src', 'src/deep/', '/src/deep/er'])('is a directory with its entries: %j', async (path) => {
    const entries = await browser.readPath(id, head, path);
    if (!Array.isArray(entries)) throw new Error('it is a file');
    const types = { file: '100644 blob', executable: '100755 blob', symlink: '120000 blob', submodule: '160000 commit' };
    const shown = entries.map(({ kind, oid, name }) => `${kind === 'directory' ? '040000 tree' : types[kind]} ${oid}\t${name}`);
    const trimmed = path.replace(/^\/|\/$/g, '');
    expect(shown.sort()).toEqual((await git(work, 'ls-tree', `HEAD:${trimmed}`)).split('\n').sort());
  });

  it('is a file with its bytes, without them when there are too many or they are elsewhere', async () => {
    const read = async (path: string) => {
      const file = await browser.readPath(id, head, path);
      if (Array.isArray(file)) throw new Error('it is a directory');
      return [file.kind, file.bytes, file.content && Buffer.from(file.content).toString()];
    };
    expect(await read('src/deep/er/file')).toEqual(['file', 5, 'hello']);
    expect(await read('src/run')).toEqual(['executable', 9, '#!/bin/sh']);
    expect(await read('src/link')).toEqual(['symlink', 4, '../a']);
    expect(await read('large')).toEqual(['file', limits.browsing.fileBytes + 1, undefined]);
    expect(await read('module')).toEqual(['submodule', 0, undefined]);
  });

  it.each(['none', 'src/none', 'large/none', 'src/link/none', '..', 'src/../large', '.git/config', 'module/x'])(
    'that does not exist is not found: %s',
    async (path) => {
      await expect(browser.readPath(id, head, path)).rejects.toMatchObject({ code: 'not_found' });
    },
  );
});

describe('a comparison', () => {
  it('has the commits and files that git lists, over merges and file types that change', async () => {
    await commit({ stays: '1', changes: '1', goes: '1', 'becomes/a': '1', file: '1' });
    const base = await revParse('HEAD');
    await git(work, 'checkout', '-q', '-b', 'side');
    await commit({ 'side/one': '1' });
    await git(work, 'checkout', '-q', '-');
    await commit({ changes: '2' });
    await git(work, 'rm', '-rq', 'goes', 'becomes', 'file');
    await rm(join(work, 'becomes'), { recursive: true, force: true });
    await commit({ becomes: '1', 'file/x': '1' });
    await git(work, 'merge', '-q', '--no-edit', 'side');
    await push();
    const head = await revParse('HEAD');
    const { commits, files, isComplete } = await browser.compare(id, base, head);
    const listed = (await git(work, 'rev-list', `${base}..${head}`)).split('\n');
    expect(commits.map(({ oid }) => oid).sort()).toEqual(listed.sort());
    expect(commits[0]?.oid).toBe(head);
    const letters = { added: 'A', modified: 'M', deleted: 'D' };
    const diff = (await git(work, 'diff', '--name-status', '--no-renames', base, head)).split('\n');
    expect(files.map(({ path, change }) => `${letters[change]}\t${path}`)).toEqual(
      diff.sort((a, b) => (a.slice(2) < b.slice(2) ? -1 : 1)),
    );
    expect(isComplete).toBe(true);
    expect(await browser.compare(id, head, head)).toEqual({ commits: [], files: [], isComplete: true });
    expect((await browser.compare(id, head, base)).commits).toEqual([]);
  });

  it('is incomplete beyond its limits', async () => {
    const base = await revParse('HEAD');
    await commit(Object.fromEntries(Array.from({ length: limits.browsing.files + 5 }, (_, i) => [`many/${i}`, '1'])));
    await push();
    const { commits, files, isComplete } = await browser.compare(id, base, await revParse('HEAD'));
    expect([commits.length, files.length, isComplete]).toEqual([1, limits.browsing.files, false]);
  });
});
