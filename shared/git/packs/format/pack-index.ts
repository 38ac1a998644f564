import { hash } from 'node:crypto';
import { oidBytes } from '#shared/git/objects/oid-table.ts';

/** gitformat-pack(5), "Version 2 pack-*.idx files". */
const magic = 0xff744f63;
const fanoutAt = 8;
const oidsAt = fanoutAt + 256 * 4;
const largeOffset = 0x80000000;

/** The index of a pack: finds the offset of an object by its id. */
export class PackIndex {
  readonly objectCount: number;
  /** The file. */
  readonly bytes: Buffer;
  readonly #offsetsAt: number;
  #byOffset: { offsets: Float64Array; positions: Uint32Array } | undefined;

  /** @param bytes the file @throws Error when it is not an index of version 2 */
  constructor(bytes: Buffer) {
    if (bytes.length < oidsAt + 40 || bytes.readUInt32BE(0) !== magic || bytes.readUInt32BE(4) !== 2)
      throw new Error('not a pack index');
    this.bytes = bytes;
    this.objectCount = bytes.readUInt32BE(oidsAt - 4);
    this.#offsetsAt = oidsAt + this.objectCount * (oidBytes + 4);
    if (bytes.length < this.#offsetsAt + this.objectCount * 4 + 40) throw new Error('a pack index is cut short');
  }

  /** Position, in the order of ids, of the id at `oid[at]`; or -1. */
  find(oid: Uint8Array, at = 0): number {
    const { bytes } = this;
    const first = oid[at] ?? 0;
    let low = first === 0 ? 0 : bytes.readUInt32BE(fanoutAt + (first - 1) * 4);
    let high = bytes.readUInt32BE(fanoutAt + first * 4) - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const start = oidsAt + middle * oidBytes;
      let difference = 0;
      for (let i = 0; i < oidBytes && difference === 0; i++) difference = (bytes[start + i] ?? 0) - (oid[at + i] ?? 0);
      if (difference === 0) return middle;
      if (difference < 0) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** The raw id at a position; a view, not a copy. */
  oidAt(position: number): Buffer {
    return this.bytes.subarray(oidsAt + position * oidBytes, oidsAt + (position + 1) * oidBytes);
  }

  /** Offset in the pack of the object at a position. */
  offsetAt(position: number): number {
    const offset = this.bytes.readUInt32BE(this.#offsetsAt + position * 4);
    if (offset < largeOffset) return offset;
    return Number(this.bytes.readBigUInt64BE(this.#offsetsAt + this.objectCount * 4 + (offset - largeOffset) * 8));
  }

  /** CRC-32 of the entry of the object at a position. */
  crcAt(position: number): number {
    return this.bytes.readUInt32BE(oidsAt + this.objectCount * oidBytes + position * 4);
  }

  /** Rank, in the order of the pack, of the entry that begins at `offset`; or -1. */
  rankOf(offset: number): number {
    const { offsets } = this.#sorted();
    let low = 0;
    let high = offsets.length - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const found = offsets[middle] ?? 0;
      if (found === offset) return middle;
      if (found < offset) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** Offset of the entry with a rank; undefined after the last. */
  offsetOfRank(rank: number): number | undefined {
    return this.#sorted().offsets[rank];
  }

  /** Position, in the order of ids, of the entry with a rank. */
  positionOfRank(rank: number): number {
    return this.#sorted().positions[rank] ?? 0;
  }

  /** The entries in the order of the pack; computed once, when first needed. */
  #sorted(): { offsets: Float64Array; positions: Uint32Array } {
    if (this.#byOffset !== undefined) return this.#byOffset;
    const positions = new Uint32Array(this.objectCount).map((_, position) => position);
    const unsorted = Float64Array.from(positions, (position) => this.offsetAt(position));
    positions.sort((a, b) => (unsorted[a] ?? 0) - (unsorted[b] ?? 0));
    this.#byOffset = { offsets: unsorted.sort(), positions };
    return this.#byOffset;
  }
}

/** What an index is made of. */
export interface IndexEntries {
  count: number;
  /** Raw ids in any order. */
  oids: Buffer;
  offsets: Float64Array;
  /** CRC-32 of each entry's bytes in the pack. */
  crcs: Uint32Array;
}

/** The file that `git index-pack` would write, byte for byte. @throws RangeError for more than 2^21 entries */
export function encodePackIndex(entries: IndexEntries, packChecksum: Buffer): Buffer {
  const { count, oids, offsets, crcs } = entries;
  const order = sortByOid(oids, count);
  const large = order.filter((entry) => (offsets[entry] ?? 0) >= largeOffset).length;
  const bytes = Buffer.alloc(oidsAt + count * (oidBytes + 8) + large * 8 + 40);
  const crcsAt = oidsAt + count * oidBytes;
  const offsetsAt = crcsAt + count * 4;
  const largeAt = offsetsAt + count * 4;
  const fanout = new Uint32Array(256);
  bytes.writeUInt32BE(magic, 0);
  bytes.writeUInt32BE(2, 4);
  let nextLarge = 0;
  for (let position = 0; position < count; position++) {
    const entry = order[position] ?? 0;
    const offset = offsets[entry] ?? 0;
    oids.copy(bytes, oidsAt + position * oidBytes, entry * oidBytes, (entry + 1) * oidBytes);
    bytes.writeUInt32BE(crcs[entry] ?? 0, crcsAt + position * 4);
    if (offset < largeOffset) {
      bytes.writeUInt32BE(offset, offsetsAt + position * 4);
    } else {
      bytes.writeUInt32BE(largeOffset + nextLarge, offsetsAt + position * 4);
      bytes.writeBigUInt64BE(BigInt(offset), largeAt + nextLarge++ * 8);
    }
    fanout[oids[entry * oidBytes] ?? 0]! += 1;
  }
  let below = 0;
  for (let first = 0; first < 256; first++) {
    below += fanout[first] ?? 0;
    bytes.writeUInt32BE(below, fanoutAt + first * 4);
  }
  packChecksum.copy(bytes, bytes.length - 40);
  hash('sha1', bytes.subarray(0, bytes.length - 20), 'buffer').copy(bytes, bytes.length - 20);
  return bytes;
}

/** Entry numbers in the order of their ids. */
function sortByOid(oids: Buffer, count: number): Uint32Array {
  // 32 bits of the id and 21 bits of the number fit into a double's 53 bits. Sorting numbers natively is much faster than a comparator.
  const shift = 2 ** 21;
  if (count > shift) throw new RangeError('too many objects for one pack index');
  const keys = new Float64Array(count);
  for (let entry = 0; entry < count; entry++) keys[entry] = oids.readUInt32BE(entry * oidBytes) * shift + entry;
  keys.sort();
  const order = Uint32Array.from(keys, (key) => key % shift);
  const compare = (a: number, b: number): number =>
    oids.compare(oids, b * oidBytes, (b + 1) * oidBytes, a * oidBytes, (a + 1) * oidBytes);
  // Prefixes can be equal, by chance or because somebody made them so: runs of equal ones are sorted by the whole id.
  for (let start = 0; start < count; ) {
    const prefix = Math.floor((keys[start] ?? 0) / shift);
    let end = start + 1;
    while (end < count && Math.floor((keys[end] ?? 0) / shift) === prefix) end++;
    if (end - start > 1) order.subarray(start, end).sort(compare);
    start = end;
  }
  return order;
}
