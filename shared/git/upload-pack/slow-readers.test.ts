import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { delimiterPacket, encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

const mebibyte = 1024 * 1024;
const packBytes = 12 * mebibyte;

let fixture: GitFixture;
let id: RepositoryId;
let head: string;
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
  id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  head = await commitFiles(work, { 'large.bin': randomBytes(packBytes) });
  await git(work, 'push', '-q', 'origin', 'main');
});
afterAll(async () => {
  await fixture.close();
});

/** A clone by a client that stops reading once the pack has begun. */
function cloneAndStop(): { stopped: Promise<void>; leave(): void; served: Promise<number> } {
  const stopped = Promise.withResolvers<void>();
  const gone = new AbortController();
  const request = [
    encodePacket('command=fetch'),
    delimiterPacket,
    encodePacket('ofs-delta'),
    encodePacket(`want ${head}`),
    encodePacket('done'),
    flushPacket,
  ];
  let received = 0;
  const served = fixture.storage.server.uploadPack(
    { repositoryId: id, headRef: 'refs/heads/main' },
    {
      input: (async function* () {
        yield Buffer.concat(request);
        if (!gone.signal.aborted) await new Promise((resolve) => gone.signal.addEventListener('abort', resolve));
      })(),
      // Like a connection, this waits for its client until that disconnects.
      async write(chunk) {
        received += chunk.length;
        if (received < 100_000 || gone.signal.aborted) return;
        stopped.resolve();
        await new Promise((resolve) => gone.signal.addEventListener('abort', resolve));
      },
      protocol: 'version=2',
      clientGone: gone.signal,
    },
  );
  return { stopped: stopped.promise, leave: () => gone.abort(), served };
}

it('keeps little of a pack in memory for clients that stop reading, blocks no thread, and ends when they disconnect', async () => {
  const before = process.memoryUsage().external;
  // More than twice as many as any machine that runs this has threads.
  const clients = Array.from({ length: 20 }, cloneAndStop);
  await Promise.all(clients.map(({ stopped }) => stopped));

  const copy = join(fixture.directory, 'copy');
  await git(fixture.directory, 'clone', '-q', fixture.server.url(id), copy);
  expect(await git(copy, 'rev-parse', 'HEAD')).toBe(head);
  const work = await fixture.workingCopy(fixture.newRepository());
  await commitFiles(work, { a: '1' });
  await git(work, 'push', '-q', 'origin', 'main');
  expect(process.memoryUsage().external - before).toBeLessThan((clients.length * packBytes) / 3);

  for (const { leave } of clients) leave();
  expect(await Promise.all(clients.map(({ served }) => served))).toHaveLength(clients.length);
});
