import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

let fixture: GitFixture;
let repository: RepositoryId;
let tip: string;
beforeAll(async () => {
  fixture = await createGitFixture('memory');
  repository = fixture.newRepository();
  const work = await fixture.workingCopy(repository);
  tip = await commitFiles(work, { a: '1' });
  await git(work, 'push', '-q', 'origin', 'main', 'main:one', 'main:two');
});
afterAll(async () => {
  await fixture.close();
});

/** Sends a push as it stands, without a pack. Returns its outcome and what was answered after the refs. */
async function send(request: Buffer, step?: 'serve') {
  let answer = '';
  const stream = {
    input: (async function* () {
      yield request;
    })(),
    write: async (bytes: Uint8Array) => {
      answer += Buffer.from(bytes).toString('latin1');
    },
    protocol: '',
    clientGone: new AbortController().signal,
    step,
  };
  const opened = { repositoryId: repository, headRef: 'refs/heads/main' };
  const outcome = await fixture.storage.server.receivePack(opened, stream, fixture.applyPush(repository));
  return { ...outcome, answer };
}

const none = '0'.repeat(40);
const remove = (name: string, more = ''): Buffer => encodePacket(`${tip} ${none} refs/heads/${name}${more}`);
const names = async () => (await fixture.storage.refs.listRefs(repository)).map(({ name }) => name);

it.each([
  ['between two commands', () => Buffer.concat([remove('one', '\0report-status atomic')])],
  [
    'between two push options',
    () => Buffer.concat([remove('one', '\0report-status push-options'), flushPacket, encodePacket('detach')]),
  ],
  ['before its push options', () => Buffer.concat([remove('one', '\0report-status push-options'), flushPacket])],
])('a push whose connection ends %s changes nothing', async (_where, makeRequest) => {
  for (const step of [undefined, 'serve'] as const) {
    const { exitStatus, answer } = await send(makeRequest(), step);
    expect([exitStatus, answer]).toEqual([128, expect.stringContaining('ERR the connection ended in the middle of a message')]);
    expect(await names()).toEqual(['refs/heads/main', 'refs/heads/one', 'refs/heads/two']);
  }
});

it('a client that only looks at the refs, and then disconnects, has done nothing wrong', async () => {
  expect(await send(Buffer.alloc(0))).toMatchObject({ exitStatus: 0, requestedRefs: 0 });
  expect(await send(flushPacket)).toMatchObject({ exitStatus: 0, requestedRefs: 0 });
});

it.each([
  ['is too long', 'x'.repeat(65_000)],
  ['has bytes that are not UTF-8, three times as long in the answer', '\xff'.repeat(60_000)],
])('reports on a ref whose name %s', async (_what, name) => {
  const command = Buffer.concat([
    Buffer.from(`${tip} ${none} refs/heads/`),
    Buffer.from(name, 'latin1'),
    Buffer.from('\0report-status'),
  ]);
  const { answer } = await send(Buffer.concat([encodePacket(command), flushPacket]));
  expect(answer).toMatch(/ng refs\/heads\/.{1000,}funny refname|ERR .*name of a ref/);
});
