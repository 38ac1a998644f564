import { GitFault } from '#shared/git/git-fault.ts';
import { headroom } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import { applyDelta, readDeltaHead } from '#shared/git/packs/format/delta.ts';
import type { Inflater, OpenInflater } from '#shared/git/packs/format/inflater.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import { type EntryLocation, PackLookup } from '#shared/git/packs/reading/pack-lookup.ts';

/** An object as it was read. */
export interface StoredObject {
  /** 1 to 4 (`objectTypes`). */
  type: number;
  /** Must not be changed: other readers get the same bytes. */
  data: Buffer;
}

const readAhead = 4096;
const cacheBytes = 32 * 1024 * 1024;
/** The longest chain that git itself makes. */
const longestChain = 4096;

/** Reads objects from packs. Memory: the largest object with its base, and a bounded cache. */
export class ObjectDatabase {
  readonly packs: readonly OpenPack[];
  /** Bytes of all objects read so far, including the bases of deltas. */
  madeBytes = 0;
  readonly openInflater: OpenInflater;
  readonly #inflater: Inflater;
  readonly #cache = new Map<string, StoredObject>();
  #cachedBytes = 0;
  readonly #lookup: PackLookup;

  constructor(packs: readonly OpenPack[], openInflater: OpenInflater = openNativeInflater) {
    this.openInflater = openInflater;
    this.#inflater = openInflater();
    this.packs = packs;
    this.#lookup = new PackLookup(packs);
  }

  /** The object whose raw id is at `oid[at]`. Undefined when there is none. */
  find(oid: Uint8Array, at = 0): EntryLocation | undefined {
    return this.#lookup.find(oid, at);
  }

  /** 1 to 4 (`objectTypes`), or undefined when there is no such object. */
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

  /** Size of an object's content. Inflates only its beginning. */
  readSize(location: EntryLocation): number {
    const { type, size, length } = location.pack.headerAt(location.offset);
    if (type !== offsetDelta && type !== referenceDelta) return size;
    const beginning = Buffer.allocUnsafe(32);
    this.#inflater.reset();
    const raw = location.pack.bytes.read(location.offset + length, readAhead);
    this.#inflater.push(raw, 0, raw.length, { bytes: beginning, start: 0, end: beginning.length });
    return readDeltaHead(beginning, 0, this.#inflater.produced).resultSize;
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

  /** @throws GitFault when a delta or its compressed data is broken */
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
      const head = readDeltaHead(delta);
      const data = Buffer.allocUnsafeSlow(head.resultSize);
      applyDelta(current.data, delta, head, data, 0);
      current = this.#remember(step, { type: current.type, data });
    }
    return current;
  }

  /** The inflated data of an entry; for a delta, its instructions. */
  inflateAt({ pack, offset }: EntryLocation): Buffer {
    const { size, length } = pack.headerAt(offset);
    // One byte more than the data: otherwise the end of the stream looks like a lack of room.
    const output = Buffer.allocUnsafeSlow(size + 1);
    let position = offset + length;
    let produced = 0;
    this.#inflater.reset();
    while (!this.#inflater.ended && produced <= size && position < pack.bytes.size) {
      const raw = pack.bytes.read(position, Math.max(readAhead, Math.min(size - produced, 1024 * 1024)));
      this.#inflater.push(raw, 0, raw.length, { bytes: output, start: produced, end: output.length });
      position += this.#inflater.consumed;
      produced += this.#inflater.produced;
    }
    if (produced !== size) throw new GitFault('a stored object is broken');
    return output.subarray(0, size);
  }

  /** Frees memory. The packs stay open. */
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
