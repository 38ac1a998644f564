import { millisecondsPerMinute } from '#shared/durations.ts';
import type { OpenInflater } from '#shared/git/packs/format/inflater.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack, type PackLocation } from '#shared/git/packs/reading/open-pack.ts';

/** Limits of the packs that stay open while no task uses them. The least recently used are dropped first. */
const mostPacks = 8192;
const mostIndexBytes = 64 * 1024 * 1024;
const mostFiles = 256;
/**
 * A deleted file takes disk space while it is open, and the packs of a busy repository are soon joined into others and deleted.
 */
const idleMilliseconds = 5 * millisecondsPerMinute;

const open = new Map<string, { pack: OpenPack; users: number; usedAt: number }>();

/** Runs `use` on the objects of these packs. Packs never change, so they stay open for the next task. */
export async function withDatabase<T>(
  locations: readonly PackLocation[],
  use: (database: ObjectDatabase) => Promise<T>,
  openInflater: OpenInflater = openNativeInflater,
): Promise<T> {
  const acquired: OpenPack[] = [];
  let database: ObjectDatabase | undefined;
  try {
    for (const location of locations) acquired.push(acquire(location));
    database = new ObjectDatabase(acquired, openInflater);
    return await use(database);
  } finally {
    database?.close();
    for (const pack of acquired) release(pack);
    trim();
  }
}

function acquire(location: PackLocation): OpenPack {
  const entry = open.get(location.key) ?? { pack: new OpenPack(location), users: 0, usedAt: 0 };
  entry.users++;
  open.delete(location.key);
  open.set(location.key, entry);
  return entry.pack;
}

function release(pack: OpenPack): void {
  const entry = open.get(pack.key);
  if (entry === undefined) return;
  entry.users--;
  entry.usedAt = performance.now();
  if (!pack.isShortLived || entry.users > 0) return;
  pack.close();
  open.delete(pack.key);
}

function trim(): void {
  let indexBytes = 0;
  let files = 0;
  const idleBefore = performance.now() - idleMilliseconds;
  for (const [key, { pack, users, usedAt }] of open) {
    if (users === 0 && usedAt < idleBefore) {
      pack.close();
      open.delete(key);
      continue;
    }
    indexBytes += pack.index.bytes.length;
    if (pack.isReading) files++;
  }
  for (const [key, { pack, users }] of open) {
    const tooMany = open.size > mostPacks || indexBytes > mostIndexBytes;
    if (!tooMany && files <= mostFiles) break;
    if (users > 0) continue;
    if (pack.isReading) files--;
    pack.close();
    if (!tooMany) continue;
    open.delete(key);
    indexBytes -= pack.index.bytes.length;
  }
}
