import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { delimiterPacket, encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitFiles, git, tryGit } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

const version2 = ['-c', 'protocol.version=2'];
let fixture: GitFixture;
let id: RepositoryId;
let copy: string;
let ours: string;
/** The same repository, served by git itself. */
let theirs: string;
let clones = 0;

beforeAll(async () => {
  fixture = await createGitFixture('memory');
  id = fixture.newRepository();
  copy = await fixture.workingCopy(id);
  for (let i = 0; i < 4; i++) {
    await commitFiles(copy, { 'top.txt': `${i}\n`, 'a/small.txt': `small ${i}\n`, 'a/b/c/large.txt': `${i}\n`.repeat(2000) });
  }
  await git(copy, 'tag', '-a', '-m', 'A tag', 'v1', 'HEAD~1');
  await git(copy, 'push', '-q', 'origin', 'main', '--tags');
  ours = fixture.server.url(id);
  const bare = join(fixture.directory, 'theirs.git');
  await git(fixture.directory, 'clone', '-q', '--mirror', copy, bare);
  await git(bare, 'config', 'uploadpack.allowFilter', 'true');
  theirs = `file://${bare}`;
}, 60_000);
afterAll(() => fixture.close());

/** Ids and types of the objects in a clone. */
async function cloned(url: string, ...options: readonly string[]): Promise<string[]> {
  const into = join(fixture.directory, `parity-${++clones}`);
  await git(fixture.directory, ...version2, 'clone', '-q', '--bare', ...options, url, into);
  return (await git(into, 'cat-file', '--batch-all-objects', '--batch-check')).split('\n');
}

describe('a filter leaves out the same objects as in git', () => {
  it.each([
    'blob:none',
    'blob:limit=1k',
    'tree:0',
    'tree:1',
    'tree:3',
    'object:type=commit',
    'object:type=tag',
    'object:type=tree',
    'object:type=blob',
    'combine:blob:none+tree:3',
    'combine:tree:2+blob:limit=1k',
    'combine:object:type=blob+blob:limit=1k',
    'combine:object:type=blob+object:type=tree',
  ])('%s', async (filter) => {
    expect(await cloned(ours, `--filter=${filter}`)).toEqual(await cloned(theirs, `--filter=${filter}`));
  });

  it('two filters', async () => {
    const options = ['--filter=blob:none', '--filter=tree:2'];
    expect(await cloned(ours, ...options)).toEqual(await cloned(theirs, ...options));
  });

  it('an unknown filter is rejected with a list of the known ones', async () => {
    const { code, stderr } = await tryGit(fixture.directory, [
      ...version2,
      'clone',
      '--filter=sparse:oid=main:top.txt',
      ours,
      'sparse',
    ]);
    expect(code).toBe(128);
    expect(stderr).toContain("unknown filter 'sparse:oid=main:top.txt'; use blob:none");
  });
});

it('a client that wants nothing gets the common commits, as it asks for before a push', async () => {
  const common = await git(copy, 'rev-parse', 'HEAD');
  const lines = ['wait-for-done', 'ofs-delta', `have ${common}`, `have ${'1'.repeat(40)}`];
  const request = [
    encodePacket('command=fetch\n'),
    delimiterPacket,
    ...lines.map((line) => encodePacket(`${line}\n`)),
    flushPacket,
  ];
  const answer: Uint8Array[] = [];
  const status = await fixture.storage.server.uploadPack(
    { repositoryId: id, headRef: 'refs/heads/main' },
    {
      input: (async function* () {
        yield Buffer.concat(request);
      })(),
      write: async (chunk) => void answer.push(Uint8Array.from(chunk)),
      protocol: 'version=2',
      clientGone: new AbortController().signal,
      step: 'serve',
    },
  );
  const expected = [encodePacket('acknowledgments\n'), encodePacket(`ACK ${common}\n`), flushPacket];
  expect({ status, answer: Buffer.concat(answer).toString() }).toEqual({ status: 0, answer: Buffer.concat(expected).toString() });
});

describe.each(['0', '2'])('version %s: a fetch that excludes the history of', (version) => {
  const clone = (...options: readonly string[]) =>
    tryGit(fixture.directory, ['-c', `protocol.version=${version}`, 'clone', '-q', ...options, ours, `without-${++clones}`]);

  it('a missing ref is rejected with its name', async () => {
    const { code, stderr } = await clone('--shallow-exclude=never');
    expect(code).toBe(128);
    expect(stderr).toContain("'never'");
  });

  it.each(['v1', 'refs/tags/v1', 'tags/v1'])('the tag %s gets the commits after it', async (name) => {
    const { code, stderr } = await clone(`--shallow-exclude=${name}`);
    expect(code, stderr).toBe(0);
    expect(await git(join(fixture.directory, `without-${clones}`), 'rev-list', '--count', 'HEAD')).toBe('1');
  });
});
