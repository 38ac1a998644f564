import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir, symlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import { commitFiles, git } from '#shared/git/testing/git-client.ts';
import { createGitFixture, type GitFixture } from '#shared/git/testing/git-fixture.ts';
import { commitOf, objectId, PackBuilder, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pushRaw } from '#shared/git/testing/raw-push.ts';
import type { ObjectId } from '#shared/ids.ts';

let fixture: GitFixture;
beforeAll(async () => {
  fixture = await createGitFixture('postgres');
});
afterAll(async () => {
  await fixture.close();
  expect(fixture.logged).toEqual([]);
});

it('reads a tree in path order, with modes, links and submodules, and every byte as it was committed', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const large = randomBytes(300_000);
  await commitFiles(work, {
    'a.txt': 'a',
    'a/b.txt': 'b',
    'a/run': '#!/bin/sh',
    'z/deep/er/file': large,
    ...Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`many/${i}`, `${i}`])),
  });
  await chmod(join(work, 'a/run'), 0o755);
  await symlink('../a.txt', join(work, 'a/link'));
  const other = '3'.repeat(40);
  await git(work, 'update-index', '--add', '--cacheinfo', `160000,${other},module`);
  await git(work, 'add', 'a');
  await git(work, 'commit', '-qm', 'modes');
  await git(work, 'push', '-q', 'origin', 'main');
  const head = (await git(work, 'rev-parse', 'HEAD')) as ObjectId;
  const found: string[] = [];
  for await (const entry of fixture.storage.reader.readTree(id, head)) {
    found.push(
      `${{ file: '100644', executable: '100755', symlink: '120000', submodule: '160000' }[entry.kind]} ${entry.oid} 0\t${entry.path}`,
    );
    if (entry.kind === 'submodule') {
      expect(entry.oid).toBe(other);
      await expect(entry.read()).rejects.toMatchObject({ code: 'not_found' });
    } else {
      expect(objectId('blob', Buffer.from(await entry.read()))).toBe(entry.oid);
    }
  }
  expect(found).toEqual((await git(work, 'ls-files', '--stage')).split('\n'));
});

it('resolves branches, tags, full names and ids to commits, and nothing else', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const first = await commitFiles(work, { a: '1' });
  await git(work, 'tag', '-a', '-m', 'inner', 'inner');
  await git(work, 'tag', '-a', '-m', 'outer', 'outer', 'inner');
  const second = await commitFiles(work, { a: '2' });
  await git(work, 'push', '-q', 'origin', 'main', 'outer');
  const { resolveCommit, isAncestor } = fixture.storage.reader;
  for (const revision of ['main', 'refs/heads/main', second]) expect(await resolveCommit(id, revision)).toBe(second);
  for (const revision of ['outer', 'refs/tags/outer']) expect(await resolveCommit(id, revision)).toBe(first);
  const tree = await git(work, 'rev-parse', 'HEAD^{tree}');
  for (const revision of [tree, 'none', '4'.repeat(40), '../main', '']) expect(await resolveCommit(id, revision)).toBeUndefined();
  expect(await isAncestor(id, first as ObjectId, second as ObjectId)).toBe(true);
  expect(await isAncestor(id, second as ObjectId, first as ObjectId)).toBe(false);
  await expect(isAncestor(id, '4'.repeat(40) as ObjectId, first as ObjectId)).rejects.toMatchObject({ code: 'not_found' });
});

it('stores and reads a file of 95 MB within bounded memory, and rejects one of 101 MB', async () => {
  const id = fixture.newRepository();
  const content = randomBytes(95 * 1024 * 1024);
  const builder = new PackBuilder();
  const blob = objectId('blob', content);
  builder.entry(encodeEntryHeader(3, content.length), deflateSync(content, { level: 0 }));
  const tip = builder.add('commit', commitOf(builder.add('tree', treeEntry('100644', 'large', blob))));
  const pack = builder.build();
  const before = process.memoryUsage.rss();
  const pushTo = (name: string, pushed: Buffer) =>
    pushRaw(fixture.storage, id, { change: { name, to: tip }, pack: pushed, applyPush: fixture.applyPush(id) });
  expect(await pushTo('refs/heads/main', pack)).toEqual(['unpack ok', 'ok refs/heads/main']);
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
  for await (const entry of fixture.storage.reader.readTree(id, tip as ObjectId))
    expect(content.equals(await entry.read())).toBe(true);

  const tooLarge = new PackBuilder();
  tooLarge.entry(encodeEntryHeader(3, 101 * 1024 * 1024), deflateSync(Buffer.alloc(101 * 1024 * 1024)));
  const [unpack] = await pushTo('refs/heads/other', tooLarge.build());
  expect(unpack).toContain('100 MiB, which is the limit here');
});

it('sweeps what a crash left in quarantine, but not what is being received', async () => {
  const id = fixture.newRepository();
  const quarantine = join(fixture.directory, 'data', id, 'quarantine');
  for (const name of ['old', 'new']) {
    await mkdir(join(quarantine, name), { recursive: true });
    await writeFile(join(quarantine, name, 'pack'), 'half a pack');
  }
  const longAgo = new Date(Date.now() - 7200_000);
  await utimes(join(quarantine, 'old', 'pack'), longAgo, longAgo);
  await utimes(join(quarantine, 'old'), longAgo, longAgo);
  expect(await fixture.storage.sweep(3600)).toBe(1);
  expect(await readdir(quarantine)).toEqual(['new']);
  expect(await fixture.storage.sweep(0)).toBe(1);
});

it('sweeps a pack whose transaction was rolled back, and no other', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const usual = fixture.applyPush;
  fixture.applyPush =
    () =>
    async ({ commands, pack }) => {
      const failed = await fixture.db
        .transaction()
        .execute(async (transaction) => {
          await pack?.admit(transaction);
          throw new Error('rolled back');
        })
        .catch((error: Error) => error.message);
      return commands.map(({ name }) => ({ name, status: 'rejected', reason: failed }));
    };
  await commitFiles(work, { a: '1' });
  await expect(git(work, 'push', 'origin', 'main')).rejects.toThrow('rolled back');
  fixture.applyPush = usual;
  await commitFiles(work, { a: '2' });
  await git(work, 'push', '-q', 'origin', 'main');
  const packs = join(fixture.directory, 'data', id, 'packs');
  const count = async (): Promise<number> => (await readdir(packs)).filter((name) => name.endsWith('.pack')).length;
  expect(await count()).toBe(2);
  expect(await fixture.storage.sweep(3600)).toBe(0);
  expect(await fixture.storage.sweep(0)).toBe(1);
  expect(await count()).toBe(1);
  await git(await fixture.exportBare(id), 'fsck', '--full', '--strict');
});

it('sweeps no pack that a push is about to make part of the repository', async () => {
  const id = fixture.newRepository();
  const work = await fixture.workingCopy(id);
  const usual = fixture.applyPush;
  let sweeping: Promise<number> | undefined;
  fixture.applyPush =
    () =>
    async ({ commands, pack }) => {
      await fixture.db.transaction().execute(async (transaction) => {
        await pack?.admit(transaction);
        sweeping = fixture.storage.sweep(0);
        const waiting = async (): Promise<number> => {
          const locks = await sql`select 1 from pg_locks join pg_database on pg_database.oid = database
            where datname = current_database() and locktype = 'advisory' and not granted`.execute(transaction);
          return locks.rows.length;
        };
        await expect.poll(waiting, { timeout: 20_000 }).toBe(1);
        await fixture.storage.refs.compareAndSwap(transaction, id, commands);
      });
      return commands.map(({ name }) => ({ name, status: 'ok' }));
    };
  await commitFiles(work, { a: '1' });
  await git(work, 'push', '-q', 'origin', 'main');
  fixture.applyPush = usual;
  await sweeping;
  await git(fixture.directory, 'clone', '-q', fixture.server.url(id), join(fixture.directory, `clone-${id}`));
});

const deep = (leaf: string, name: string, levels: number, width: number, mode: string) => (builder: PackBuilder) => {
  let tree = builder.add('tree', treeEntry(mode, name, leaf));
  for (let level = 1; level < levels; level++) {
    const entries = Array.from({ length: width }, (_, i) => treeEntry('40000', width === 1 ? name : `${i}`, tree));
    tree = builder.add('tree', Buffer.concat(entries));
  }
  return tree;
};
const leaf = objectId('blob', 'x');

it.each([
  ['a million files in a few hundred bytes', deep(leaf, 'f', 7, 10, '100644'), 'more than 200000 files and directories'],
  [
    'a million directories without a file',
    deep(objectId('tree', ''), 'd', 7, 10, '40000'),
    'more than 200000 files and directories',
  ],
  ['directories nested thousands deep', deep(leaf, 'dir', 3000, 1, '100644'), 'a path of more than 4096 characters'],
  [
    'paths that are too long together',
    (builder: PackBuilder) => {
      const names = Array.from({ length: 30_000 }, (_, i) => `${i}`).toSorted();
      let tree = builder.add('tree', Buffer.concat(names.map((name) => treeEntry('100644', name, leaf))));
      for (let level = 0; level < 20; level++) tree = builder.add('tree', treeEntry('40000', 'n'.repeat(200), tree));
      return tree;
    },
    'characters together',
  ],
])('does not read a commit of %s', async (_what, make, fault) => {
  const id = fixture.newRepository();
  const builder = new PackBuilder();
  builder.add('blob', 'x');
  builder.add('tree', '');
  const commit = builder.add('commit', commitOf(make(builder)));
  const change = { name: 'refs/heads/main', to: commit };
  const lines = await pushRaw(fixture.storage, id, { change, pack: builder.build(), applyPush: fixture.applyPush(id) });
  expect(lines).toEqual(['unpack ok', 'ok refs/heads/main']);
  const refusal = { code: 'validation_failed', message: expect.stringContaining(fault) as string };
  await expect(
    fixture.storage.reader
      .readTree(id, commit as ObjectId)
      [Symbol.asyncIterator]()
      .next(),
  ).rejects.toMatchObject(refusal);
  await expect(fixture.storage.reader.listSubmodules(id, commit as ObjectId)).rejects.toMatchObject(refusal);
});
