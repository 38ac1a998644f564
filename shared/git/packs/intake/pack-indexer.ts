import { type FileHandle } from 'node:fs/promises';
import { crc32, deflateSync } from 'node:zlib';
import type { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import type { OpenInflater } from '#shared/git/packs/format/inflater.ts';
import { encodeEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import type { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import type { ObjectSink, PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import { writeAll } from '#shared/git/packs/intake/write-all.ts';
import type { ObjectDatabase, StoredObject } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** A pack in a file, after the scan: its whole objects have their ids, its deltas do not. */
export interface ScannedPack {
  /** Get the ids and types of deltas, and the bases that are appended. */
  entries: EntryTable;
  /** Deltas that the scanner has inflated. */
  deltas: DeltaCache;
  packPath: string;
  /** The same file, open for writing. */
  file: FileHandle;
  /** Where the last entry ends. */
  packEnd: number;
  limits: PackLimits;
  /** The objects of the repository that the pack is for. */
  stored: ObjectDatabase;
  /** Called with each object that was a delta. */
  onObject: ObjectSink;
  yieldToEventLoop: YieldToEventLoop;
}

/** Finds the ids of a pack's deltas. Drivers: `nativeIndexer`, and `isomorphicGitIndexer` for any runtime. */
export interface PackIndexer {
  /** Inflates for everything else that is done with packs. */
  readonly openInflater: OpenInflater;
  /**
   * Gives each delta its id and type, and appends the bases that a thin pack lacks.
   * @returns where the last entry ends now
   * @throws GitFault when a delta has no base or is broken, or a limit is exceeded
   */
  indexDeltas(pack: ScannedPack): Promise<number>;
}

/** Writes a base of a thin pack at `end`, in place of the trailer or after the last base. Returns the new end. */
export function appendBase({ file, entries }: ScannedPack, end: number, oid: Buffer, base: StoredObject): number {
  const head = encodeEntryHeader(base.type, base.data.length);
  const bytes = Buffer.concat([head, deflateSync(base.data)]);
  writeAll(file, bytes, end);
  const entry = entries.add(end, base.type);
  entries.crcs[entry] = crc32(bytes);
  entries.setOid(entry, oid);
  return end + bytes.length;
}
