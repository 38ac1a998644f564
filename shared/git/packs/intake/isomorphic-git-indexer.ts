import { readFile } from 'node:fs/promises';
import { indexPack, type PromiseFsClient } from 'isomorphic-git';
import { GitFault } from '#shared/git/git-fault.ts';
import { objectTypes, offsetDelta, referenceDelta, typeName } from '#shared/git/objects/object-type.ts';
import { applyDelta, readDeltaHead } from '#shared/git/packs/format/delta.ts';
import type { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { PackIndex } from '#shared/git/packs/format/pack-index.ts';
import { openPortableInflater } from '#shared/git/packs/format/portable-inflater.ts';
import { largestDeltaWork } from '#shared/git/packs/intake/delta-resolver.ts';
import { appendBase, type PackIndexer, type ScannedPack } from '#shared/git/packs/intake/pack-indexer.ts';
import { describeObject } from '#shared/git/packs/intake/pack-scanner.ts';
import { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import { createObjectFiles } from '#shared/git/packs/reading/object-files.ts';
import { OpenPack } from '#shared/git/packs/reading/open-pack.ts';

/** isomorphic-git keeps many objects in memory: all objects of a pack together may not be larger. */
const mostExpandedBytes = 256 * 1024 * 1024;
/** Of a pack, which is in memory as a whole. */
const mostPackBytes = 128 * 1024 * 1024;
/** isomorphic-git finds no delta before its base. Each pass finds those whose base the last one found. */
const mostPasses = 8;
const longestChain = 4096;

/** Resolves deltas by isomorphic-git, in memory, on any runtime. It takes six times as long as the native one. */
export const isomorphicGitIndexer: PackIndexer = {
  openInflater: openPortableInflater,
  async indexDeltas(pack) {
    const { entries, stored } = pack;
    const deltas = Uint32Array.from({ length: entries.count }, (_, entry) => entry).filter((entry) => isDelta(entries, entry));
    if (deltas.length === 0) return pack.packEnd;
    const bytes = await readFile(pack.packPath);
    checkSizes(pack, deltas, bytes);
    const index = await findIds(pack, deltas, bytes);
    const bases = basesOf(entries, deltas, index);
    const received = openReceived(pack.packPath, index);
    const database = new ObjectDatabase([...stored.packs, received], stored.openInflater);
    try {
      setIds(pack, deltas, index, bases);
      await reportObjects(pack, deltas, database);
      let end = pack.packEnd;
      for (const oid of bases.outside) {
        const base = stored.read(oid);
        if (base === undefined) throw new Error('a stored object has gone');
        end = appendBase(pack, end, oid, base);
      }
      return end;
    } finally {
      database.close();
      received.close();
    }
  },
};

function isDelta({ types }: EntryTable, entry: number): boolean {
  return types[entry] === offsetDelta || types[entry] === referenceDelta;
}

/** Nothing is handed to isomorphic-git whose objects would not fit into memory: it has no limits of its own. */
function checkSizes({ entries, deltas: cache, limits }: ScannedPack, deltas: Uint32Array, bytes: Buffer): void {
  if (bytes.length > mostPackBytes) throw tooLarge('the pack is larger than', mostPackBytes);
  let expanded = 0;
  for (let entry = 0; entry < entries.count; entry++) expanded += entries.sizes[entry] ?? 0;
  const inflater = openPortableInflater();
  const beginning = Buffer.alloc(32);
  for (const entry of deltas) {
    const size = entries.sizes[entry] ?? 0;
    const cachedAt = entries.cachedAt[entry] ?? -1;
    let head: Buffer = beginning;
    let start = 0;
    if (cachedAt >= 0) {
      head = cache.pageOf(cachedAt);
      start = cache.startInPage(cachedAt);
    } else {
      const at = (entries.offsets[entry] ?? 0) + (entries.headLengths[entry] ?? 0);
      inflater.reset();
      inflater.push(bytes, at, bytes.length, { bytes: beginning, start: 0, end: beginning.length });
    }
    const { resultSize } = readDeltaHead(head, start, start + Math.min(size, beginning.length));
    if (resultSize > limits.objectBytes) throw tooLarge('the pack has an object of more than', limits.objectBytes);
    expanded += resultSize;
  }
  inflater.close();
  if (expanded > mostExpandedBytes)
    throw new GitFault(`the deltas of the pack expand to too many bytes: more than ${mostExpandedBytes / 1024 / 1024} MiB`);
}

function tooLarge(what: string, limit: number): GitFault {
  return new GitFault(`${what} ${Math.floor(limit / 1024 / 1024)} MiB, which is the limit here`);
}

/** @returns an index with each entry of the pack @throws GitFault when a delta has no base or is broken */
async function findIds(pack: ScannedPack, deltas: Uint32Array, bytes: Buffer): Promise<PackIndex> {
  const { entries, stored, packPath, yieldToEventLoop } = pack;
  let last: PackIndex | undefined;
  for (let pass = 0; pass < mostPasses; pass++) {
    const received = last === undefined ? undefined : openReceived(packPath, last);
    const database = new ObjectDatabase(received === undefined ? stored.packs : [...stored.packs, received], stored.openInflater);
    try {
      const index = await runIndexPack(bytes, database);
      rejectDuplicates(index, database, entries);
      if (index.objectCount === entries.count) return index;
      if (index.objectCount === last?.objectCount) break;
      last = index;
    } finally {
      database.close();
      received?.close();
    }
    await yieldToEventLoop();
  }
  throw last === undefined ? new Error('isomorphic-git has made no pass') : explainUnresolved(pack, bytes, last);
}

/** isomorphic-git leaves out a delta without saying why. */
function explainUnresolved({ entries, stored, packPath }: ScannedPack, bytes: Buffer, index: PackIndex): GitFault {
  const found = new Set(Array.from({ length: index.objectCount }, (_, position) => index.offsetAt(position)));
  const received = openReceived(packPath, index);
  const database = new ObjectDatabase([...stored.packs, received], stored.openInflater);
  let unresolved = 0;
  try {
    for (let entry = 0; entry < entries.count; entry++) {
      const offset = entries.offsets[entry] ?? 0;
      if (found.has(offset)) continue;
      unresolved++;
      const baseOffset = entries.offsets[entries.bases[entry] ?? -1];
      const isByOffset = entries.types[entry] === offsetDelta;
      const location = isByOffset ? { pack: received, offset: baseOffset ?? 0 } : database.find(entries.oid(entry));
      if (location === undefined || (isByOffset && !found.has(location.offset))) continue;
      const delta = database.inflateAt({ pack: received, offset });
      const head = readDeltaHead(delta);
      applyDelta(database.readAt(location).data, delta, head, Buffer.allocUnsafe(head.resultSize), 0);
    }
  } catch (error) {
    if (error instanceof GitFault) return error;
    throw error;
  } finally {
    database.close();
    received.close();
  }
  return new GitFault(`the pack has ${unresolved} deltas without a base`);
}

async function runIndexPack(pack: Buffer, outside: ObjectDatabase): Promise<PackIndex> {
  let index: Buffer | undefined;
  const objects = createObjectFiles(async (oid) => {
    const object = outside.read(Buffer.from(oid, 'hex'));
    return object === undefined ? undefined : { type: typeName(object.type), content: object.data };
  });
  const fs: PromiseFsClient = {
    promises: {
      ...objects.promises,
      readFile: async (path: string): Promise<Uint8Array> => (path === '/received.pack' ? pack : objects.promises.readFile(path)),
      writeFile: async (_path: string, content: Uint8Array) => {
        index = Buffer.from(content);
      },
    },
  };
  await indexPack({ fs, dir: '/', gitdir: '/repository', filepath: 'received.pack' });
  if (index === undefined) throw new Error('isomorphic-git has written no index');
  return new PackIndex(index);
}

/** Of two entries with one id, isomorphic-git lists the offset of one twice. */
function rejectDuplicates(index: PackIndex, outside: ObjectDatabase, entries: EntryTable): void {
  for (let position = 1; position < index.objectCount; position++) {
    const oid = index.oidAt(position);
    if (!oid.equals(index.oidAt(position - 1))) continue;
    const type = entries.types[entries.findOffset(index.offsetAt(position))] ?? 0;
    const known = type < offsetDelta ? type : outside.readType(oid);
    throw new GitFault(
      `${known === undefined ? `object ${oid.toString('hex')}` : describeObject(known, oid)} is in the pack twice`,
    );
  }
}

function openReceived(packPath: string, index: PackIndex): OpenPack {
  const shared = new SharedArrayBuffer(index.bytes.length);
  index.bytes.copy(new Uint8Array(shared));
  return new OpenPack({
    key: `${packPath} while it is received`,
    pack: packPath,
    index: shared,
    links: new SharedArrayBuffer(0),
  });
}

/** What the deltas of a pack are based on. */
interface Bases {
  /** By entry: the entry that it is based on, otherwise -1. */
  within: Int32Array;
  /** Ids of bases that the pack does not have. */
  outside: Buffer[];
}

function basesOf(entries: EntryTable, deltas: Uint32Array, index: PackIndex): Bases {
  const within = new Int32Array(entries.count).fill(-1);
  const outside = new Map<string, Buffer>();
  for (const entry of deltas) {
    if (entries.types[entry] === offsetDelta) {
      within[entry] = entries.bases[entry] ?? -1;
      continue;
    }
    const oid = Buffer.from(entries.oid(entry));
    const position = index.find(oid);
    if (position < 0) outside.set(oid.toString('latin1'), oid);
    else within[entry] = entries.findOffset(index.offsetAt(position));
  }
  return { within, outside: [...outside.values()] };
}

/** Writes ids and types into the table. @throws GitFault for a chain that readers would refuse */
function setIds(pack: ScannedPack, deltas: Uint32Array, index: PackIndex, { within }: Bases): void {
  const { entries, stored } = pack;
  const depths = new Uint16Array(entries.count);
  for (const entry of deltas) {
    const chain: number[] = [];
    let root = entry;
    while (isDelta(entries, root) && (within[root] ?? -1) >= 0) {
      chain.push(root);
      if (chain.length > longestChain) throw endlessChain(chain, root, index, pack);
      root = within[root] ?? -1;
    }
    if (isDelta(entries, root)) {
      entries.types[root] = stored.readType(entries.oid(root)) ?? 0;
      depths[root] = 1;
    }
    for (let next = chain.pop(); next !== undefined; next = chain.pop()) {
      const base = within[next] ?? 0;
      entries.types[next] = entries.types[base] ?? 0;
      depths[next] = (depths[base] ?? 0) + 1;
      if ((depths[next] ?? 0) > longestChain) throw longChain();
    }
  }
  for (let position = 0; position < index.objectCount; position++)
    entries.setOid(entries.findOffset(index.offsetAt(position)), index.oidAt(position));
}

/** A delta whose base is in the end the delta itself was resolved on the same object of the repository. */
function endlessChain(chain: readonly number[], last: number, index: PackIndex, { entries, stored }: ScannedPack): GitFault {
  if (!chain.includes(last)) return longChain();
  const oid = index.oidAt(index.positionOfRank(index.rankOf(entries.offsets[last] ?? 0)));
  return new GitFault(`${describeObject(stored.readType(oid) ?? objectTypes.blob, oid)} is in the pack twice`);
}

function longChain(): GitFault {
  return new GitFault(`the pack has a chain of more than ${longestChain} deltas`);
}

/** Blobs are reported without their content, which nobody checks. */
async function reportObjects(pack: ScannedPack, deltas: Uint32Array, database: ObjectDatabase): Promise<void> {
  const { entries, packEnd, onObject, yieldToEventLoop } = pack;
  const end = database.madeBytes + largestDeltaWork(packEnd);
  for (const entry of deltas) {
    const [type, oid] = [entries.types[entry] ?? 0, entries.oid(entry)];
    const content = typeName(type) === 'blob' ? undefined : database.read(oid)?.data;
    if (database.madeBytes > end) throw new GitFault('the deltas of the pack expand to too many bytes');
    onObject(entry, type, oid, content);
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
  }
}
