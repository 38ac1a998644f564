import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import { nativeIndexer } from '#shared/git/packs/intake/native-indexer.ts';
import { streamed } from '#shared/git/testing/mutation.ts';
import { copyInstruction, deltaOf, PackBuilder } from '#shared/git/testing/pack-builder.ts';
import { createTasks } from '#shared/git/worker/tasks.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-abandoned-'));
});
afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** A valid pack of a few kilobytes whose deltas produce 1.5 GB. */
function slowPack(): Buffer {
  const builder = new PackBuilder();
  const base = Buffer.alloc(1024 * 1024, 7);
  const copies = Buffer.concat(Array.from({ length: 64 }, () => copyInstruction(0, 1_000_000)));
  const at = builder.entry(encodeEntryHeader(3, base.length), deflateSync(base));
  for (let i = 0; i < 24; i++)
    builder.offsetDelta(at, deltaOf(base.length, 64_000_001, Buffer.concat([copies, Buffer.of(1, i)])));
  return builder.build();
}

it('intake of a pack ends when its client disconnects, or when a push takes too long', async () => {
  const [packPath = '', indexPath = '', linksPath = ''] = ['pack', 'idx', 'links'].map((name) => join(directory, name));
  const limits = { packBytes: 1_000_000, objectBytes: 100_000_000, objects: 100 };
  const link = { input: streamed([slowPack()]), write: async () => undefined, signal: AbortSignal.abort() };
  const request = { packPath, indexPath, linksPath, limits };
  await expect(createTasks(nativeIndexer).intake({ packs: [], request }, link)).rejects.toThrow('the client has gone');
});
