import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import { isomorphicGitIndexer } from '#shared/git/packs/intake/isomorphic-git-indexer.ts';
import { nativeIndexer } from '#shared/git/packs/intake/native-indexer.ts';
import { intakePack } from '#shared/git/packs/intake/pack-intake.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { git } from '#shared/git/testing/git-client.ts';
import { copyInstruction, deltaOf, objectId, PackBuilder } from '#shared/git/testing/pack-builder.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-intake-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Receives a pack in pieces of a size, and compares pack and index with those of stock git. */
async function expectGitsIndex(name: string, pack: Buffer, pieceBytes: number, indexer = nativeIndexer): Promise<void> {
  const [packPath, indexPath, linksPath] = ['pack', 'idx', 'links'].map((kind) => join(directory, `${name}.${kind}`)) as [
    string,
    string,
    string,
  ];
  const pieces = (async function* () {
    for (let at = 0; at < pack.length; at += pieceBytes) yield pack.subarray(at, at + pieceBytes);
  })();
  const limits = { packBytes: 2 ** 30, objectBytes: 100 * 1024 * 1024, objects: 100_000 };
  const stored = new ObjectDatabase([], indexer.openInflater);
  await intakePack(pieces, { packPath, indexPath, linksPath, limits }, stored, () => undefined, indexer);
  stored.close();
  expect((await readFile(packPath)).equals(pack)).toBe(true);
  const theirs = join(directory, `${name}-theirs`);
  await writeFile(`${theirs}.pack`, pack);
  await git(directory, 'index-pack', '-o', `${theirs}.idx`, `${theirs}.pack`);
  expect((await readFile(indexPath)).equals(await readFile(`${theirs}.idx`))).toBe(true);
}

describe.each([
  ['native', nativeIndexer],
  ['isomorphic-git', isomorphicGitIndexer],
] as const)('by the %s indexer', (name, indexer) => {
  it.each([1, 7, 4096, 2 ** 24])(
    'writes the same index as git for a pack that arrives in pieces of %i bytes',
    async (pieceBytes) => {
      const builder = new PackBuilder();
      const text = 'a line that comes again and again\n'.repeat(40);
      const id = builder.add('blob', text);
      builder.add('blob', '');
      let offset = builder.entry(encodeEntryHeader(3, text.length + 1), deflateSync(`${text}!`));
      for (let i = 1; i < 60; i++) {
        const size = text.length + i;
        offset = builder.offsetDelta(
          offset,
          deltaOf(size, size + 1, Buffer.concat([copyInstruction(0, size), Buffer.of(1, 65 + (i % 26))])),
        );
        builder.referenceDelta(id, deltaOf(text.length, 200 + i, copyInstruction(i, 200 + i)));
      }
      await expectGitsIndex(`pieces-${pieceBytes}-${name}`, builder.build(), pieceBytes, indexer);
    },
  );

  it('resolves reference deltas that come before their base, and whose base is itself a delta', async () => {
    const builder = new PackBuilder();
    const text = 'some text to begin with, and a little more of it';
    const middle = `${text}1`;
    builder.referenceDelta(objectId('blob', middle), deltaOf(middle.length, 10, copyInstruction(0, 10)));
    builder.referenceDelta(
      objectId('blob', text),
      deltaOf(text.length, middle.length, Buffer.concat([copyInstruction(0, text.length), Buffer.of(1, 0x31)])),
    );
    builder.add('blob', text);
    await expectGitsIndex(`forward-${name}`, builder.build(), 64, indexer);
  });

  it('resolves a chain whose every base comes later, as far as the indexer goes', async () => {
    const texts = Array.from({ length: 6 }, (_, i) => 'x'.repeat(20 + i));
    const builder = new PackBuilder();
    for (const [i, text] of texts.entries()) {
      const base = texts[i + 1];
      if (base === undefined) builder.add('blob', text);
      else builder.referenceDelta(objectId('blob', base), deltaOf(base.length, text.length, copyInstruction(0, text.length)));
    }
    await expectGitsIndex(`backwards-${name}`, builder.build(), 64, indexer);
  });
});

it('builds bases again that it dropped to stay within memory', async () => {
  const builder = new PackBuilder();
  const base = Buffer.alloc(6 * 1024 * 1024, 'not all alike ');
  const all = (size: number): Buffer => {
    const copies: Buffer[] = [];
    for (let at = 0; at < size; at += 0xffffff) copies.push(copyInstruction(at, Math.min(0xffffff, size - at)));
    return Buffer.concat(copies);
  };
  let size = base.length;
  let offset = builder.entry(encodeEntryHeader(3, size), deflateSync(base));
  const trunk: { offset: number; size: number }[] = [];
  // A trunk of 25 objects of 6 MiB is three times the memory limit. Each has a second delta, which is resolved on the way back.
  for (let i = 0; i < 25; i++) {
    trunk.push({ offset, size });
    offset = builder.offsetDelta(offset, deltaOf(size, size + 1, Buffer.concat([all(size), Buffer.of(1, i)])));
    size += 1;
  }
  for (const each of trunk)
    builder.offsetDelta(
      each.offset,
      deltaOf(each.size, each.size + 2, Buffer.concat([all(each.size), Buffer.of(2, 0xff, 0xff)])),
    );
  const pack = builder.build();
  const before = process.memoryUsage.rss();
  await expectGitsIndex('trunk', pack, 65_536);
  expect(process.memoryUsage.rss() - before).toBeLessThan(200 * 1024 * 1024);
});

it('resolves chains that partly fit on the stack, with deltas that partly fit into the cache', async () => {
  const builder = new PackBuilder();
  let size = 300_000;
  let offset = builder.entry(encodeEntryHeader(3, size), deflateSync(Buffer.alloc(size, 'not all alike ')));
  const trunk: { offset: number; size: number }[] = [];
  // Sixty objects of at least 0.3 MB fill several stacks. Every third delta is too long for the cache.
  for (let i = 0; i < 60; i++) {
    trunk.push({ offset, size });
    const literal = Buffer.alloc(i % 3 === 0 ? 70_000 : 4, String(i).padStart(4));
    const inserts: Buffer[] = [];
    for (let at = 0; at < literal.length; at += 127) {
      const piece = literal.subarray(at, at + 127);
      inserts.push(Buffer.of(piece.length), piece);
    }
    const kept = Math.min(size, 300_000);
    offset = builder.offsetDelta(
      offset,
      deltaOf(size, kept + literal.length, Buffer.concat([copyInstruction(0, kept), ...inserts])),
    );
    size = kept + literal.length;
  }
  for (const [i, each] of trunk.entries())
    builder.offsetDelta(each.offset, deltaOf(each.size, 5000 + i, copyInstruction(i, 5000 + i)));
  await expectGitsIndex('stack', builder.build(), 10_000);
});
