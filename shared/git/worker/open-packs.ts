import { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import { OpenPack, type PackLocation } from '#shared/git/packs/open-pack.ts';

/** Packs that no task uses are kept open up to these, least recently used ones closed first. */
const keptPacks = 256;
const keptIndexBytes = 64 * 1024 * 1024;

const open = new Map<string, { pack: OpenPack; users: number }>();

/** Runs `use` on the objects of these packs. Packs never change, so what is open is used again. */
export async function withDatabase<T>(locations: readonly PackLocation[], use: (database: ObjectDatabase) => Promise<T>): Promise<T> {
  const taken: OpenPack[] = [];
  let database: ObjectDatabase | undefined;
  try {
    for (const location of locations) taken.push(take(location));
    database = new ObjectDatabase(taken);
    return await use(database);
  } finally {
    database?.close();
    for (const pack of taken) giveBack(pack);
  }
}

function take(location: PackLocation): OpenPack {
  const entry = open.get(location.key) ?? { pack: new OpenPack(location), users: 0 };
  entry.users++;
  open.delete(location.key);
  open.set(location.key, entry);
  return entry.pack;
}

function giveBack(pack: OpenPack): void {
  const entry = open.get(pack.key);
  if (entry !== undefined) entry.users--;
  let indexBytes = 0;
  for (const { pack: each } of open.values()) indexBytes += each.index.byteLength;
  for (const [key, { pack: oldest, users }] of open) {
    if (open.size <= keptPacks && indexBytes <= keptIndexBytes) break;
    if (users > 0) continue;
    oldest.close();
    open.delete(key);
    indexBytes -= oldest.index.byteLength;
  }
}
