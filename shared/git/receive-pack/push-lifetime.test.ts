import { spawn } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodePackHeader } from '#shared/git/packs/format/pack-entry.ts';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import type { RepositoryId } from '#shared/ids.ts';

let fixture: GitFixture;
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
});
afterAll(async () => {
  await fixture.close();
});

it('finishes a push whose client has disconnected, and tells the callback', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const head = await commitFiles(work, { a: '1' });
  const usual = fixture.applyPush;
  const started = Promise.withResolvers<void>();
  const finished = Promise.withResolvers<boolean>();
  fixture.applyPush = (repositoryId) => async (request, writeLine, clientGone) => {
    writeLine('-----> Building');
    started.resolve();
    await new Promise((resolve) => clientGone.addEventListener('abort', resolve, { once: true }));
    writeLine('nobody reads this');
    const results = await fixture.moveRefs(repositoryId, request);
    finished.resolve(clientGone.aborted);
    return results;
  };
  const served = fixture.server.statuses.length;
  const client = spawn('git', ['-c', 'protocol.ext.allow=always', 'push', 'origin', 'main'], {
    cwd: work,
    stdio: 'ignore',
    detached: true,
  });
  await started.promise;
  process.kill(-(client.pid ?? 0), 'SIGKILL');
  expect(await finished.promise).toBe(true);
  fixture.applyPush = usual;
  await expect.poll(() => fixture.server.statuses.length).toBe(served + 1);
  expect(fixture.server.statuses.at(-1)).toBe(0);
  expect(await fixture.storage.refs.readRef(id, 'refs/heads/main')).toBe(head);
  expect(await fixture.listQuarantines(id)).toEqual([]);
});

/** Begins a push, and stops in the middle of the pack. */
async function stall(repositoryId: RepositoryId, bytes: number): Promise<Socket> {
  const socket = connect(join(fixture.directory, 'git.sock'));
  socket.write(`${JSON.stringify({ service: 'receive-pack', repository: repositoryId, protocol: '' })}\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  socket.write(encodePacket(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/heads/main\0report-status`));
  socket.write(Buffer.concat([flushPacket, encodePackHeader(1000), Buffer.of(0xb0)]).subarray(0, flushPacket.length + bytes));
  return socket;
}

it('keeps nothing of a push that ends in the middle of its pack, and does not call the callback', async () => {
  const id = fixture.newRepository();
  const usual = fixture.applyPush;
  let called = false;
  fixture.applyPush = () => async () => {
    called = true;
    return [];
  };
  const served = fixture.server.statuses.length;
  const socket = await stall(id, 13);
  await expect.poll(() => fixture.listQuarantines(id)).toHaveLength(1);
  socket.destroy();
  await expect.poll(() => fixture.server.statuses.length).toBe(served + 1);
  fixture.applyPush = usual;
  expect(called).toBe(false);
  expect(await fixture.listQuarantines(id)).toEqual([]);
  expect(await fixture.storage.refs.listRefs(id)).toEqual([]);
});

it('serves a push while fifty others stop in the middle of their packs', async () => {
  const stalled = await Promise.all(Array.from({ length: 50 }, () => stall(fixture.newRepository(), 13)));
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const head = await commitFiles(work, { a: '1' });
  await git(work, 'push', '-q', 'origin', 'main');
  expect(await fixture.storage.refs.readRef(id, 'refs/heads/main')).toBe(head);
  for (const socket of stalled) socket.destroy();
});

it('serves clones from many small packs', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  for (let i = 0; i < 12; i++) {
    await commitFiles(work, { [`f${i % 4}`]: `content ${i}\n`.repeat(30) });
    await git(work, 'push', '-q', 'origin', 'main');
  }
  const clone = join(fixture.directory, 'of-many');
  await git(fixture.directory, 'clone', '-q', fixture.server.url(id), clone);
  await git(clone, 'fsck', '--full', '--strict');
  expect(await git(clone, 'rev-parse', 'HEAD')).toBe(await git(work, 'rev-parse', 'HEAD'));
  const bare = await fixture.exportBare(id);
  await git(bare, 'fsck', '--full', '--strict');
  await git(fixture.directory, 'clone', '-q', '--depth', '3', fixture.server.url(id), `${clone}-shallow`);
  await git(`${clone}-shallow`, 'fsck', '--full');
});
