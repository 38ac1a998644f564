import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { GitIndexer } from '#shared/git/git-indexers.ts';
import { commitFiles, git, packRefs, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture, storageKinds } from '#shared/git/testing/git-fixture.ts';

const kinds: [kind: (typeof storageKinds)[number], indexer: GitIndexer][] = [
  ...storageKinds.map((kind): [typeof kind, GitIndexer] => [kind, 'native']),
  ['postgres', 'isomorphic-git'],
];

describe.each(kinds)('a stock git client and the %s storage by the %s indexer', (kind, indexer) => {
  let fixture: GitFixture;
  beforeAll(async () => {
    fixture = await createGitFixture(kind, { indexer });
  });
  afterAll(async () => {
    await fixture.close();
    expect(fixture.logged).toEqual([]);
  });

  /** Stock git finds no fault, and our indexes are the same as its own. Only packs in files can be exported. */
  async function verify(repositoryId: Parameters<GitFixture['exportBare']>[0]): Promise<void> {
    expect(await fixture.listQuarantines(repositoryId)).toEqual([]);
    if (kind === 'memory') return;
    const bare = await fixture.exportBare(repositoryId);
    const { code, stderr } = await tryGit(bare, ['fsck', '--full', '--strict']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringMatching(/error|missing|broken/) });
    const packs = join(bare, 'objects', 'pack');
    for (const pack of (await readdir(packs)).filter((name) => name.endsWith('.pack'))) {
      const idx = join(packs, pack.replace(/\.pack$/, '.idx'));
      const theirs = join(bare, 'theirs.idx');
      await git(bare, 'index-pack', '-o', theirs, join(packs, pack));
      expect((await tryGit(bare, ['diff', '--no-index', '--quiet', idx, theirs])).code).toBe(0);
    }
  }

  it('accepts a first push, and serves the same to a clone', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    const head = await commitFiles(work, { 'a.txt': 'hello\n', 'dir/b.txt': 'world\n', empty: '' });
    await git(work, 'push', '-q', 'origin', 'main');
    const clone = join(fixture.directory, `clone-${id}`);
    await git(fixture.directory, 'clone', '-q', fixture.server.url(id), clone);
    expect(await git(clone, 'rev-parse', 'HEAD')).toBe(head);
    expect(await git(clone, 'symbolic-ref', 'HEAD')).toBe('refs/heads/main');
    await git(clone, 'fsck', '--full', '--strict');
    await verify(id);
  });

  it('accepts a second push as a thin pack, and completes it', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    const lines = Array.from({ length: 2000 }, (_, i) => `line ${i} of a text that is long enough to be worth a delta`);
    await commitFiles(work, { 'large.txt': lines.join('\n') });
    await git(work, 'push', '-q', 'origin', 'main');
    lines[1000] = 'changed';
    const head = await commitFiles(work, { 'large.txt': lines.join('\n') });
    await git(work, 'push', '-q', 'origin', 'main');
    expect(await git(work, 'ls-remote', 'origin', 'refs/heads/main')).toContain(head);
    await verify(id);
  });

  it('moves a branch back only by force, deletes it, and accepts annotated tags', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    const first = await commitFiles(work, { a: '1' });
    await commitFiles(work, { a: '2' });
    await git(work, 'tag', '-a', '-m', 'the tag', 'v1', 'HEAD');
    await git(work, 'push', '-q', 'origin', 'main', 'main:other', 'v1');
    await git(work, 'reset', '-q', '--hard', first);
    expect((await tryGit(work, ['push', 'origin', 'main'])).stderr).toContain('non-fast-forward');
    await git(work, 'push', '-q', '--force', 'origin', 'main');
    await git(work, 'push', '-q', 'origin', ':other');
    const listed = await git(work, 'ls-remote', 'origin');
    expect(listed).toContain(`${first}\trefs/heads/main`);
    expect(listed).toContain('refs/tags/v1^{}');
    expect(listed).not.toContain('other');
    await verify(id);
  });

  it('passes changes and push options to the callback', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    const first = await commitFiles(work, { a: '1' });
    const second = await commitFiles(work, { a: '2' });
    await git(work, 'push', '-q', 'origin', 'main');
    const seen: unknown[] = [];
    const usual = fixture.applyPush;
    fixture.applyPush = (repositoryId) => async (request) => {
      seen.push(request.commands, request.pushOptions, request.atomic);
      return await fixture.moveRefs(repositoryId, request);
    };
    const third = await commitFiles(work, { a: '3' });
    await git(work, 'push', '-q', '-o', 'detach', '-o', 'x=y', 'origin', 'main');
    await git(work, 'reset', '-q', '--hard', first);
    await git(work, 'push', '-q', '--atomic', '--force', 'origin', 'main');
    fixture.applyPush = usual;
    const name = 'refs/heads/main';
    expect(seen).toEqual([
      ...[[{ name, oldOid: second, newOid: third }], ['detach', 'x=y'], false],
      ...[[{ name, oldOid: third, newOid: first }], [], true],
    ]);
  });

  it('shows progress at once, and keeps nothing of a push that the callback rejects', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    await commitFiles(work, { a: '1' });
    const usual = fixture.applyPush;
    fixture.applyPush =
      () =>
      async ({ commands }, writeLine) => {
        writeLine('-----> Building');
        return commands.map(({ name }) => ({ name, status: 'rejected', reason: 'build failed' }));
      };
    const { code, stderr } = await tryGit(work, ['push', 'origin', 'main']);
    fixture.applyPush = usual;
    expect(code).toBe(1);
    expect(stderr).toContain('remote: -----> Building');
    expect(stderr).toContain('! [remote rejected] main -> main (build failed)');
    expect(await fixture.storage.refs.listRefs(id)).toEqual([]);
    await verify(id);
  });

  it('changes all refs of an atomic push or none', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    await commitFiles(work, { a: '1' });
    await git(work, 'push', '-q', 'origin', 'main:refs/heads/dir');
    const refused = await tryGit(work, ['push', '--atomic', 'origin', 'main:refs/heads/one', 'main:refs/heads/dir/below']);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("'refs/heads/dir' exists");
    expect((await fixture.storage.refs.listRefs(id)).map(({ name }) => name)).toEqual(['refs/heads/dir']);
    await git(work, 'push', '-q', '--atomic', 'origin', 'main:refs/heads/one', 'main:refs/heads/two');
    expect((await fixture.storage.refs.listRefs(id)).map(({ name }) => name)).toEqual([
      'refs/heads/dir',
      'refs/heads/one',
      'refs/heads/two',
    ]);
  });

  it('accepts one of two concurrent pushes, and tells the other to fetch first', async () => {
    const id = fixture.newRepository();
    const one = await fixture.workingCopy(id);
    await commitFiles(one, { a: '1' });
    await git(one, 'push', '-q', 'origin', 'main');
    const two = join(fixture.directory, `rival-${id}`);
    await git(fixture.directory, 'clone', '-q', fixture.server.url(id), two);
    await commitFiles(one, { b: '1' });
    await commitFiles(two, { c: '1' });
    let arrived = 0;
    let bothAreIn = (): void => undefined;
    const both = new Promise<void>((resolve) => {
      bothAreIn = resolve;
    });
    const usual = fixture.applyPush;
    fixture.applyPush = (repositoryId) => async (request) => {
      if (++arrived === 2) bothAreIn();
      await both;
      return await fixture.moveRefs(repositoryId, request);
    };
    const outcomes = await Promise.all([one, two].map((path) => tryGit(path, ['push', 'origin', 'main'])));
    fixture.applyPush = usual;
    expect(outcomes.map(({ code }) => code).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(outcomes.find(({ code }) => code === 1)?.stderr).toContain('fetch first');
    await verify(id);
  });

  it('serves an empty repository, and a push without new commits', async () => {
    const id = fixture.newRepository();
    const clone = join(fixture.directory, `empty-${id}`);
    const { code, stderr } = await tryGit(fixture.directory, ['clone', fixture.server.url(id), clone]);
    expect(code).toBe(0);
    expect(stderr).toContain('empty repository');
    await commitFiles(clone, { a: '1' });
    await git(clone, 'push', '-q', 'origin', 'main');
    expect((await tryGit(clone, ['push', 'origin', 'main'])).stderr).toContain('up-to-date');
    await git(clone, 'push', '-q', 'origin', 'main:again');
    expect((await fixture.storage.refs.listRefs(id)).length).toBe(2);
  });

  it.each(['0', '2'])('serves fetches, shallow and partial clones in version %s of the protocol', async (version) => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    for (let i = 0; i < 12; i++)
      await commitFiles(work, { [`file-${i % 3}`]: `content ${i}\n`.repeat(50), 'same/all/the/way': 'x' }, `commit ${i}`);
    await git(work, 'tag', '-a', '-m', 'tag', 'v1', 'HEAD~3');
    await git(work, 'push', '-q', 'origin', 'main', 'v1');
    const speak = ['-c', `protocol.version=${version}`];
    const at = (name: string): string => join(fixture.directory, `${name}-${version}-${id}`);
    const count = (path: string): Promise<string> => git(path, 'rev-list', '--count', 'HEAD');

    await git(fixture.directory, ...speak, 'clone', '-q', fixture.server.url(id), at('full'));
    expect(await git(at('full'), 'tag')).toBe('v1');
    await commitFiles(work, { 'file-0': 'new\n' });
    await git(work, 'push', '-q', 'origin', 'main');
    await git(at('full'), ...speak, 'pull', '-q');
    expect(await count(at('full'))).toBe('13');

    await git(fixture.directory, ...speak, 'clone', '-q', '--depth', '2', fixture.server.url(id), at('shallow'));
    expect(await count(at('shallow'))).toBe('2');
    await git(at('shallow'), ...speak, 'fetch', '-q', '--depth', '5');
    expect(await count(at('shallow'))).toBe('5');
    await git(at('shallow'), ...speak, 'fetch', '-q', '--deepen', '2');
    expect(await count(at('shallow'))).toBe('7');
    await git(at('shallow'), ...speak, 'fetch', '-q', '--unshallow');
    expect(await count(at('shallow'))).toBe('13');

    await git(
      fixture.directory,
      ...speak,
      'clone',
      '-q',
      '--filter=blob:none',
      '--no-checkout',
      fixture.server.url(id),
      at('partial'),
    );
    expect(await git(at('partial'), 'rev-list', '--objects', '--all', '--missing=print')).toContain('?');
    await git(at('partial'), ...speak, 'checkout', '-q', 'main');
    expect(await git(at('partial'), 'status', '--porcelain')).toBe('');
    await git(fixture.directory, ...speak, 'clone', '-q', '--filter=tree:0', fixture.server.url(id), at('treeless'));
    expect(await git(at('treeless'), 'status', '--porcelain')).toBe('');
    for (const name of ['full', 'shallow', 'partial', 'treeless']) await git(at(name), 'fsck', '--full', '--strict');
  });

  // Refs are in PostgreSQL, wherever packs are stored.
  it.runIf(kind !== 'object store')('serves a repository of 2,000 refs', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    const head = await commitFiles(work, { a: '1' });
    await packRefs(
      work,
      Array.from({ length: 2000 }, (_, i) => `refs/heads/branch-${i}`),
      head,
    );
    // To the URL: for a remote, the client would also write 2,000 remote-tracking refs.
    await git(work, 'push', '-q', '--all', fixture.server.url(id));
    expect((await git(work, 'ls-remote', '--heads', 'origin')).split('\n').length).toBe(2001);
    await git(fixture.directory, 'clone', '-q', '--mirror', fixture.server.url(id), join(fixture.directory, `mirror-${id}`));
  });

  it('rejects refs other than branches, tags and notes, and deletes a whole repository', async () => {
    const id = fixture.newRepository();
    const work = await fixture.workingCopy(id);
    await commitFiles(work, { a: '1' });
    expect((await tryGit(work, ['push', 'origin', 'main:refs/hidden/x'])).stderr).toContain('only branches, tags and notes');
    expect((await tryGit(work, ['push', 'origin', 'HEAD^{tree}:refs/heads/tree'])).code).toBe(1);
    await git(work, 'push', '-q', 'origin', 'main');
    expect(await fixture.storage.deleteRepository(id)).toBe(true);
    expect(await fixture.storage.deleteRepository(id)).toBe(false);
    expect(await git(work, 'ls-remote', 'origin')).toBe('');
  });
});
