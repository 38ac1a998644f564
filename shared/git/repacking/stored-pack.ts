import { type FileHandle, open, writeFile } from 'node:fs/promises';
import type { CataloguedPack } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { PackPaths } from '#shared/git/packs/files/pack-files.ts';
import { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { encodePackIndex } from '#shared/git/packs/format/pack-index.ts';
import type { PackLinks } from '#shared/git/packs/format/pack-links.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { PackContents } from '#shared/git/packs/writing/pack-contents.ts';
import { writePack } from '#shared/git/packs/writing/pack-writer.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** Like git's own `pack.depth`: objects that are read often must not be at the end of thousands of deltas. */
const longestChain = 50;

/** A pack to be written and stored. */
export interface NewStoredPack {
  contents: PackContents;
  /** Of the files to create. */
  paths: PackPaths;
  /** Undefined when they are not known. */
  links: PackLinks | undefined;
  yieldToEventLoop: YieldToEventLoop;
  signal: AbortSignal;
}

/**
 * Writes objects as a new pack with its index, and flushes the files to stable storage.
 * @throws Error when a stored object is broken: then the new pack must not replace the packs that it was made of
 */
export async function writeStoredPack(
  database: ObjectDatabase,
  { contents, paths, links, yieldToEventLoop, signal }: NewStoredPack,
): Promise<CataloguedPack> {
  const entries = new EntryTable();
  const form = { thin: false, offsetDeltas: true, longestChain };
  const file = await open(paths.packPath, 'wx', 0o444);
  let bytes = 0;
  let checksum: Buffer;
  try {
    const write = async (chunk: Uint8Array): Promise<void> => {
      signal.throwIfAborted();
      await writeAll(file, chunk);
      bytes += chunk.length;
    };
    checksum = await writePack(database, { contents, form, write, yieldToEventLoop, entries });
    await file.datasync();
  } finally {
    await file.close();
  }
  const newFile = { flag: 'wx', mode: 0o444, flush: true } as const;
  await writeFile(paths.linksPath, JSON.stringify(links ?? null), newFile);
  await writeFile(paths.indexPath, encodePackIndex(entries, checksum), newFile);
  return { packId: checksum.toString('hex'), objectCount: entries.count, bytes };
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length; ) written += (await file.write(bytes, written)).bytesWritten;
}
