import { afterAll, beforeAll, expect, it } from 'vitest';
import { commitFiles, git, packRefs, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { limits } from '#shared/limits.ts';

let fixture: GitFixture;
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
});
afterAll(async () => {
  await fixture.close();
});

/** A working copy with this many tags of one commit. */
async function workingCopy(tags: number): Promise<{ id: ReturnType<GitFixture['newRepository']>; work: string }> {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const commit = await commitFiles(work, { a: '1' });
  await packRefs(
    work,
    Array.from({ length: tags }, (_, i) => `refs/tags/many/${i}`),
    commit,
  );
  return { id, work };
}

it('accepts 5,000 tags together with a branch, and lists some of them by their prefix', async () => {
  const { id, work } = await workingCopy(5000);
  await git(work, 'push', '-q', '--atomic', '--tags', 'origin', 'main');
  expect(await fixture.storage.refs.listRefs(id)).toHaveLength(5001);
  for (const protocol of ['0', '2']) {
    const listed = await git(work, '-c', `protocol.version=${protocol}`, 'ls-remote', 'origin', 'refs/tags/many/12*');
    expect(listed.split('\n')).toHaveLength(111);
  }
});

it('rejects a push of too many refs with their number and what to do, which then works', async () => {
  const { id, work } = await workingCopy(limits.push.refs + 1);
  const { code, stderr } = await tryGit(work, ['push', '--mirror', 'origin']);
  expect(code).not.toBe(0);
  // One message, and not a line for each ref.
  expect(stderr.trim().split('\n')).toEqual([
    expect.stringMatching(
      /^fatal: remote error: this push changes 10002 refs, and 10000 is the most at once\. Push branches and tags in parts/,
    ),
  ]);
  expect(await fixture.storage.refs.listRefs(id)).toEqual([]);
  await git(work, 'push', '-q', '--atomic', 'origin', 'refs/heads/*', 'refs/tags/many/1*');
  expect(await fixture.storage.refs.listRefs(id)).toHaveLength(1 + 1112);
});
