import { afterAll, beforeAll, expect, it } from 'vitest';
import { delimiterPacket, encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

let fixture: GitFixture;
beforeAll(async () => {
  fixture = await createGitFixture('memory');
});
afterAll(async () => {
  await fixture.close();
});

const oid = 'a'.repeat(40);
/** Far longer than any request may be. */
const endless = 64 * 1024 * 1024;

/** A client that sends something, and then the same lines without end. Returns how much was read, and the answer. */
async function serve(
  { id, service, protocol }: { id: RepositoryId; service: 'fetch' | 'push'; protocol: string },
  first: Buffer,
  again: Buffer,
) {
  const repository = { repositoryId: id, headRef: 'refs/heads/main' };
  const chunk = Buffer.concat(Array.from({ length: Math.ceil(65_536 / again.length) }, () => again));
  let sent = 0;
  let answer = '';
  const stream = {
    input: (async function* () {
      yield first;
      for (; sent < endless; sent += chunk.length) yield chunk;
    })(),
    write: async (bytes: Uint8Array) => {
      answer += Buffer.from(bytes).toString('latin1');
    },
    protocol,
    clientGone: new AbortController().signal,
  };
  if (service === 'push') await fixture.storage.server.receivePack(repository, stream, fixture.applyPush(id));
  else await fixture.storage.server.uploadPack(repository, stream);
  return { sent, answer };
}

const nothing = encodePacket('');
const command = encodePacket(`${'0'.repeat(40)} ${oid} refs/heads/main\0push-options report-status`);
const fetch = Buffer.concat([encodePacket('command=fetch'), Buffer.from('0001')]);

it('a client whose negotiation has rounds without end gets an error', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const tip = await commitFiles(work, { a: '1' });
  await git(work, 'push', '-q', 'origin', 'main');
  const first = Buffer.concat([encodePacket(`want ${tip} multi_ack_detailed`), flushPacket]);
  for (const round of [flushPacket, Buffer.concat([encodePacket(`have ${oid}`), flushPacket])]) {
    const { sent, answer } = await serve({ id, service: 'fetch', protocol: '' }, first, round);
    expect(answer).toContain('ERR the negotiation has too many rounds');
    expect(sent).toBeLessThan(2 * 1024 * 1024);
  }
});

it.each([
  ['empty arguments of a fetch', 'fetch', 'version=2', fetch, nothing],
  ['arguments of a fetch', 'fetch', 'version=2', fetch, encodePacket('thin-pack')],
  ['delimiters', 'fetch', 'version=2', fetch, delimiterPacket],
  ['refs that a fetch excludes', 'fetch', '', encodePacket(`want ${oid} ofs-delta`), encodePacket('deepen-not main')],
  ['wants', 'fetch', '', encodePacket(`want ${oid} ofs-delta`), encodePacket(`want ${oid}`)],
  ['commits a client has', 'fetch', '', Buffer.concat([encodePacket(`want ${oid}`)]), encodePacket(`shallow ${oid}`)],
  ['commands', 'push', '', command, encodePacket(`${oid} ${oid} refs/heads/main`)],
  ['shallow commits', 'push', '', command, encodePacket(`shallow ${oid}`)],
  ['empty push options', 'push', '', Buffer.concat([command, flushPacket]), nothing],
] as const)(
  'a client that sends %s without end gets an error after at most 20 MiB',
  async (_what, service, protocol, first, again) => {
    const { sent, answer } = await serve({ id: fixture.newRepository(), service, protocol }, first, again);
    expect(answer).toContain('ERR ');
    expect(sent).toBeLessThan(20 * 1024 * 1024);
  },
);
