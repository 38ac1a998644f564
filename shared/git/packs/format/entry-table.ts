import { oidBytes } from '#shared/git/objects/oid-table.ts';

/** What is known about each entry of a pack, in the order of the pack, in typed arrays: about 50 bytes an entry. */
export class EntryTable {
  count = 0;
  /** Where the entry begins. */
  offsets = new Float64Array(256);
  /** Inflated size of the entry's data; for a delta, of its instructions. */
  sizes = new Float64Array(256);
  /** CRC-32 of the entry's bytes in the pack. */
  crcs = new Uint32Array(256);
  /** Bytes of the entry's head. */
  headLengths = new Uint8Array(256);
  /** 1 to 4 (`objectTypes`); 6 or 7 for a delta until it is resolved. */
  types = new Uint8Array(256);
  /** Number of the entry that an offset delta is based on, otherwise -1. */
  bases = new Int32Array(256);
  /** Position of a delta's inflated instructions in the `DeltaCache`, otherwise -1. */
  cachedAt = new Int32Array(256);
  /** Raw ids; for a reference delta, the id of its base until it is resolved. */
  oids: Buffer = Buffer.allocUnsafe(256 * oidBytes);

  /** Adds an entry with this offset and type, everything else zero. Returns its number. */
  add(offset: number, type: number): number {
    if (this.count === this.offsets.length) this.#grow(this.count * 2);
    const entry = this.count++;
    this.offsets[entry] = offset;
    this.types[entry] = type;
    this.bases[entry] = -1;
    this.cachedAt[entry] = -1;
    return entry;
  }

  /** Number of the entry that begins at `offset`, or -1. */
  findOffset(offset: number): number {
    let low = 0;
    let high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = this.offsets[middle] ?? 0;
      if (found === offset) return middle;
      if (found < offset) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** The raw id; a view, not a copy. */
  oid(entry: number): Buffer {
    return this.oids.subarray(entry * oidBytes, (entry + 1) * oidBytes);
  }

  /** Copies the raw id at `bytes[at]`. */
  setOid(entry: number, bytes: Uint8Array, at = 0): void {
    const start = entry * oidBytes;
    for (let i = 0; i < oidBytes; i++) this.oids[start + i] = bytes[at + i] ?? 0;
  }

  #grow(capacity: number): void {
    this.offsets = grown(this.offsets, new Float64Array(capacity));
    this.sizes = grown(this.sizes, new Float64Array(capacity));
    this.crcs = grown(this.crcs, new Uint32Array(capacity));
    this.headLengths = grown(this.headLengths, new Uint8Array(capacity));
    this.types = grown(this.types, new Uint8Array(capacity));
    this.bases = grown(this.bases, new Int32Array(capacity));
    this.cachedAt = grown(this.cachedAt, new Int32Array(capacity));
    this.oids = grown(this.oids, Buffer.allocUnsafe(capacity * oidBytes));
  }
}

function grown<A extends { set(source: A): void }>(old: A, larger: A): A {
  larger.set(old);
  return larger;
}
