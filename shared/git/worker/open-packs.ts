import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { OpenPack, type PackLocation } from '#shared/git/packs/reading/open-pack.ts';

/** Packs that no task uses are kept up to these, least recently used ones dropped first. */
const keptPacks = 8192;
const keptIndexBytes = 64 * 1024 * 1024;
const keptFiles = 256;
/**
 * A file that is open takes room on the disk also when it was removed, and of a repository that gets a push a second all
 * packs but a few have been joined into others since.
 */
const idleMilliseconds = 5 * 60 * 1000;

const open = new Map<string, { pack: OpenPack; users: number; usedAt: number }>();

/** Runs `use` on the objects of these packs. Packs never change, so what is open is used again. */
export async function withDatabase<T>(
  locations: readonly PackLocation[],
  use: (database: ObjectDatabase) => Promise<T>,
): Promise<T> {
  const taken: OpenPack[] = [];
  let database: ObjectDatabase | undefined;
  try {
    for (const location of locations) taken.push(take(location));
    database = new ObjectDatabase(taken);
    return await use(database);
  } finally {
    database?.close();
    for (const pack of taken) giveBack(pack);
    trim();
  }
}

function take(location: PackLocation): OpenPack {
  const entry = open.get(location.key) ?? { pack: new OpenPack(location), users: 0, usedAt: 0 };
  entry.users++;
  open.delete(location.key);
  open.set(location.key, entry);
  return entry.pack;
}

function giveBack(pack: OpenPack): void {
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
    indexBytes += pack.index.byteLength;
    if (pack.isReading) files++;
  }
  for (const [key, { pack, users }] of open) {
    const tooMany = open.size > keptPacks || indexBytes > keptIndexBytes;
    if (!tooMany && files <= keptFiles) break;
    if (users > 0) continue;
    if (pack.isReading) files--;
    pack.close();
    if (!tooMany) continue;
    open.delete(key);
    indexBytes -= pack.index.byteLength;
  }
}
