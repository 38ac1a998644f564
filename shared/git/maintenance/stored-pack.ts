import { type FileHandle, open, writeFile } from 'node:fs/promises';
import { EntryTable } from '#shared/git/packs/entry-table.ts';
import type { PackLinks } from '#shared/git/packs/link-check.ts';
import type { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import type { CataloguedPack } from '#shared/git/packs/pack-catalog.ts';
import type { FinishedPack } from '#shared/git/packs/pack-files.ts';
import { encodePackIndex } from '#shared/git/packs/pack-index.ts';
import type { Selection } from '#shared/git/upload-pack/object-selection.ts';
import { writePack } from '#shared/git/upload-pack/pack-writer.ts';

/** As many as git's own `pack.depth`: what is read often must not be made of thousands of deltas. */
const longestChain = 50;

/**
 * Writes the selected objects as a pack to be kept, with its index, and brings both to stable storage.
 *
 * @param paths of files to make
 * @param links undefined when they are not known, or not simple
 * @throws Error when what is stored is broken: then nothing may be replaced by it
 */
export async function writeStoredPack(
  database: ObjectDatabase,
  selection: Selection,
  paths: FinishedPack,
  links: PackLinks | undefined,
  breathe: () => Promise<void> | undefined,
  signal: AbortSignal,
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
    checksum = await writePack(database, selection, form, write, breathe, entries);
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
