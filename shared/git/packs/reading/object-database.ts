import { GitFault } from '#shared/git/git-fault.ts';
import { headroom } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import { applyDelta, readDeltaSizes } from '#shared/git/packs/format/delta.ts';
import { Inflater } from '#shared/git/packs/format/inflater.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { type EntryLocation, PackLookup } from '#shared/git/packs/reading/pack-lookup.ts';

export interface StoredObject {
  /** 1 to 4. */
  type: number;
  /** Not to be changed: others may be given the same bytes. */
  data: Buffer;
}

const readAhead = 4096;
const cacheBytes = 32 * 1024 * 1024;
/** As long a chain as git itself can make. */
const longestChain = 4096;

/** The objects of a repository, read from its packs. Memory: the largest object and its base, and a bounded cache. */
export class ObjectDatabase {
  readonly packs: readonly OpenPack[];
  /** Bytes of all objects made so far, those that were only a step on the way to another included. */
  madeBytes = 0;
  readonly #inflater = new Inflater();
  readonly #cache = new Map<string, StoredObject>();
  #cachedBytes = 0;
  readonly #lookup: PackLookup;

  constructor(packs: readonly OpenPack[]) {
    this.packs = packs;
    this.#lookup = new PackLookup(packs);
  }

  find(oid: Uint8Array, at = 0): EntryLocation | undefined {
    return this.#lookup.find(oid, at);
  }

  /** 1 to 4, or undefined when there is no such object. */
  readType(oid: Uint8Array, at = 0): number | undefined {
    let found = this.find(oid, at);
    if (found === undefined) return undefined;
    for (let depth = 0; depth < longestChain && found !== undefined; depth++) {
      const { type } = found.pack.headerAt(found.offset);
      if (type !== offsetDelta && type !== referenceDelta) return type;
      found = this.baseOf(found);
    }
    throw new Error('a stored delta has no base');
  }

  /** Undefined when there is no such object. */
  read(oid: Uint8Array, at = 0): StoredObject | undefined {
    const found = this.find(oid, at);
    return found === undefined ? undefined : this.readAt(found);
  }

  /** Size of an object's content, without inflating more than the beginning of it. */
  readSize(location: EntryLocation): number {
    const { type, size, length } = location.pack.headerAt(location.offset);
    if (type !== offsetDelta && type !== referenceDelta) return size;
    const beginning = Buffer.allocUnsafe(32);
    this.#inflater.reset();
    const raw = location.pack.bytes.read(location.offset + length, readAhead);
    this.#inflater.push(raw, 0, raw.length, beginning, 0, beginning.length);
    return readDeltaSizes(beginning, this.#inflater.produced).resultSize;
  }

  /** The base of a delta; undefined for a whole object. */
  baseOf({ pack, offset }: EntryLocation): EntryLocation | undefined {
    const { type, baseDistance, baseOidAt } = pack.headerAt(offset);
    if (type === offsetDelta) return { pack, offset: offset - baseDistance };
    if (type !== referenceDelta) return undefined;
    const oid = Buffer.from(pack.bytes.read(offset + baseOidAt, oidBytes));
    const position = pack.index.find(oid);
    const base = position < 0 ? this.find(oid) : { pack, offset: pack.index.offsetAt(position) };
    if (base === undefined) throw new Error('a stored delta has no base');
    return base;
  }

  readAt(location: EntryLocation): StoredObject {
    const chain: EntryLocation[] = [];
    let current: StoredObject | undefined;
    for (let next: EntryLocation | undefined = location; current === undefined; ) {
      current = this.#cached(next);
      if (current !== undefined) break;
      const base = this.baseOf(next);
      if (base === undefined) {
        current = this.#remember(next, { type: next.pack.headerAt(next.offset).type, data: this.inflateAt(next) });
        break;
      }
      chain.push(next);
      if (chain.length > longestChain) throw new Error('a stored delta chain has no end');
      next = base;
    }
    for (let step = chain.pop(); step !== undefined; step = chain.pop()) {
      const delta = this.inflateAt(step);
      const sizes = readDeltaSizes(delta);
      const data = Buffer.allocUnsafeSlow(sizes.resultSize);
      applyDelta(current.data, delta, sizes, delta.length, data, 0);
      current = this.#remember(step, { type: current.type, data });
    }
    return current;
  }

  /** The data of an entry as it stands: of a delta, its instructions. */
  inflateAt({ pack, offset }: EntryLocation): Buffer {
    const { size, length } = pack.headerAt(offset);
    // One byte more than the data, without which the end of the stream could not be told from a lack of room.
    const output = Buffer.allocUnsafeSlow(size + 1);
    let position = offset + length;
    let produced = 0;
    this.#inflater.reset();
    while (!this.#inflater.ended && produced <= size && position < pack.bytes.size) {
      const raw = pack.bytes.read(position, Math.max(readAhead, Math.min(size - produced, 1024 * 1024)));
      this.#inflater.push(raw, 0, raw.length, output, produced, output.length);
      position += this.#inflater.consumed;
      produced += this.#inflater.produced;
    }
    if (produced !== size) throw new GitFault('a stored object is broken');
    return output.subarray(0, size);
  }

  close(): void {
    this.#inflater.close();
    this.#cache.clear();
  }

  #cached({ pack, offset }: EntryLocation): StoredObject | undefined {
    const key = `${pack.key}:${offset}`;
    const found = this.#cache.get(key);
    if (found === undefined) return undefined;
    this.#cache.delete(key);
    this.#cache.set(key, found);
    return found;
  }

  #remember({ pack, offset }: EntryLocation, object: StoredObject): StoredObject {
    this.madeBytes += object.data.length;
    if (object.data.length > cacheBytes / 4) return object;
    this.#cache.set(`${pack.key}:${offset}`, object);
    this.#cachedBytes += object.data.length + headroom * 8;
    for (const [key, oldest] of this.#cache) {
      if (this.#cachedBytes <= cacheBytes) break;
      this.#cache.delete(key);
      this.#cachedBytes -= oldest.data.length + headroom * 8;
    }
    return object;
  }
}
