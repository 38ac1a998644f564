import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { GitFault } from '#shared/git/git-fault.ts';
import { hashInPlace, headroom, startObjectHash } from '#shared/git/objects/hash-object.ts';
import { objectTypes, offsetDelta, referenceDelta, typeName } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import type { Inflater, OpenInflater, OutputRange } from '#shared/git/packs/format/inflater.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import { emptyEntryHeader, packHeaderBytes, packTrailerBytes, readEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import type { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';

/** Limits of a pack that is received. */
export interface PackLimits {
  /** Of the pack as it is sent. */
  packBytes: number;
  /** Inflated size of one object. */
  objectBytes: number;
  /** Number of objects in the pack. */
  objects: number;
}

/**
 * Called with each object once its id is known. Id and content are valid during the call only. The content is undefined for a
 * blob that is too large for memory.
 */
export type ObjectSink = (entry: number, type: number, oid: Buffer, content: Buffer | undefined) => void;

/** Larger blobs are hashed in pieces. No other object may be larger. */
const largestBuffered = 16 * 1024 * 1024;
const pieceBytes = 64 * 1024;

type State = 'header' | 'entry' | 'data' | 'trailer' | 'done';

/**
 * Reads a pack while it arrives, in chunks of any size: finds the entries, checks sizes and the checksum, and hashes the objects
 * that are not deltas. Deltas are resolved later, when the whole pack has arrived.
 */
export class PackScanner {
  readonly entries = new EntryTable();
  /** The trailing checksum, once `done`. */
  checksum: Buffer | undefined;
  readonly #limits: PackLimits;
  readonly #onObject: ObjectSink;
  readonly #deltas: DeltaCache;
  readonly #inflater: Inflater;
  readonly #packHash = createHash('sha1');
  readonly #header = emptyEntryHeader();
  #state: State = 'header';
  #expected = 0;
  /** Position in the pack of the first byte of the current chunk. */
  #origin = 0;
  /** The beginning of a head whose end has not arrived yet. */
  #pending: Buffer = Buffer.alloc(0);
  #scratch: Buffer = Buffer.allocUnsafeSlow(headroom + pieceBytes);
  #produced = 0;
  /** Index in the current chunk of the first byte of the entry that its CRC does not include yet. */
  #uncovered = 0;
  /** Of a blob that is too large for memory. */
  #largeHash: Hash | undefined;

  /** @param deltas gets inflated deltas, as many as fit, so that they need not be inflated again when they are resolved */
  constructor(limits: PackLimits, deltas: DeltaCache, onObject: ObjectSink, openInflater: OpenInflater = openNativeInflater) {
    this.#inflater = openInflater();
    this.#limits = limits;
    this.#deltas = deltas;
    this.#onObject = onObject;
  }

  /** The whole pack was read, and its checksum is right. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** Reads the next bytes. @throws GitFault when they are not a valid pack, or exceed a limit */
  push(bytes: Buffer): void {
    const chunk = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#origin -= this.#pending.length;
    if (this.#origin + chunk.length > this.#limits.packBytes) {
      throw new GitFault(
        `the pack is larger than ${Math.floor(this.#limits.packBytes / 1024 / 1024)} MiB, which is the limit here`,
      );
    }
    let at = 0;
    for (let stepped = true; stepped; ) {
      const next = this.#step(chunk, at);
      stepped = next >= 0;
      if (stepped) at = next;
    }
    if (this.#state === 'done' && at < chunk.length) throw new GitFault('there are bytes after the end of the pack');
    this.#packHash.update(chunk.subarray(0, this.#state === 'done' ? at - packTrailerBytes : at));
    this.#pending = Buffer.from(chunk.subarray(at));
    this.#origin += chunk.length;
    this.#uncovered = 0;
    if (this.#state === 'done' && !this.#packHash.digest().equals(this.checksum ?? Buffer.alloc(0))) {
      throw new GitFault('the checksum of the pack is wrong');
    }
  }

  close(): void {
    this.#inflater.close();
  }

  /** Reads one part of the pack at `chunk[at]`. Returns where it ends, or -1 when more bytes must arrive first. */
  #step(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case 'header':
        return this.#readHeader(chunk, at);
      case 'entry':
        return this.#readEntry(chunk, at);
      case 'data':
        if (at < chunk.length) return this.#readData(chunk, at);
        this.#addToCrc(chunk, at);
        return -1;
      case 'trailer':
        if (chunk.length - at < packTrailerBytes) return -1;
        this.checksum = Buffer.from(chunk.subarray(at, at + packTrailerBytes));
        this.#state = 'done';
        return at + packTrailerBytes;
      case 'done':
        return -1;
    }
  }

  #readHeader(chunk: Buffer, at: number): number {
    if (chunk.length - at < packHeaderBytes) return -1;
    if (chunk.toString('latin1', at, at + 4) !== 'PACK') throw new GitFault('this is not a pack');
    const version = chunk.readUInt32BE(at + 4);
    if (version !== 2 && version !== 3) throw new GitFault(`packs of version ${version} are not supported`);
    this.#expected = chunk.readUInt32BE(at + 8);
    if (this.#expected > this.#limits.objects)
      throw new GitFault(`the pack has more than ${this.#limits.objects} objects, which is the limit here`);
    this.#state = this.#expected === 0 ? 'trailer' : 'entry';
    return at + packHeaderBytes;
  }

  #readEntry(chunk: Buffer, at: number): number {
    const { entries } = this;
    const header = this.#header;
    if (at >= chunk.length || !readEntryHeader(chunk, at, chunk.length, header)) return -1;
    const offset = this.#origin + at;
    if (header.size > this.#limits.objectBytes) throw tooLarge(offset, this.#limits.objectBytes);
    const entry = entries.add(offset, header.type);
    entries.sizes[entry] = header.size;
    entries.headLengths[entry] = header.length;
    if (header.type >= offsetDelta) entries.cachedAt[entry] = this.#deltas.reserve(header.size);
    if (header.type === offsetDelta) {
      const base = entries.findOffset(offset - header.baseDistance);
      if (base < 0 || base === entry) throw new GitFault(`the delta at offset ${offset} has no base in the pack`);
      entries.bases[entry] = base;
    } else if (header.type === referenceDelta) {
      entries.setOid(entry, chunk, header.baseOidAt);
    } else if (header.size > largestBuffered) {
      if (header.type !== objectTypes.blob) throw tooLarge(offset, largestBuffered);
      this.#largeHash = startObjectHash(header.type, header.size);
    } else if (this.#scratch.length < headroom + header.size + 1) {
      this.#scratch = Buffer.allocUnsafeSlow(headroom + Math.ceil(header.size * 1.25) + 1);
    }
    this.#uncovered = at;
    this.#produced = 0;
    this.#inflater.reset();
    this.#state = 'data';
    return at + header.length;
  }

  /** Adds the entry's bytes before `end` to its CRC. Head and data are mostly in one chunk, and need one call. */
  #addToCrc(chunk: Buffer, end: number): void {
    const { crcs, count } = this.entries;
    if (end > this.#uncovered) crcs[count - 1] = crc32(chunk.subarray(this.#uncovered, end), crcs[count - 1]);
    this.#uncovered = end;
  }

  /** Where the next data of the current entry goes: to the cache, to the scratch buffer, or through it in pieces. */
  #outputRange(cachedAt: number): OutputRange {
    const { type, size } = this.#header;
    if (cachedAt < 0 && (type >= offsetDelta || this.#largeHash !== undefined))
      return { bytes: this.#scratch, start: 0, end: pieceBytes };
    const bytes = cachedAt < 0 ? this.#scratch : this.#deltas.pageOf(cachedAt);
    const start = cachedAt < 0 ? headroom : this.#deltas.startInPage(cachedAt);
    return { bytes, start: start + this.#produced, end: start + size + 1 };
  }

  #readData(chunk: Buffer, start: number): number {
    const { entries } = this;
    const { size, type } = this.#header;
    const entry = entries.count - 1;
    const cachedAt = entries.cachedAt[entry] ?? -1;
    const inflater = this.#inflater;
    let at = start;
    do {
      inflater.push(chunk, at, chunk.length, this.#outputRange(cachedAt));
      at += inflater.consumed;
      this.#produced += inflater.produced;
      if (this.#produced > size) throw new GitFault(`the object at offset ${entries.offsets[entry]} is larger than it states`);
      this.#largeHash?.update(this.#scratch.subarray(0, inflater.produced));
    } while (!inflater.ended && at < chunk.length);
    if (!inflater.ended) return at;
    this.#addToCrc(chunk, at);
    if (this.#produced !== size) throw new GitFault(`the object at offset ${entries.offsets[entry]} is smaller than it states`);
    if (type < offsetDelta) this.#finishObject(entry, type, size);
    this.#state = entries.count === this.#expected ? 'trailer' : 'entry';
    return at;
  }

  #finishObject(entry: number, type: number, size: number): void {
    const { entries } = this;
    let content: Buffer | undefined;
    if (this.#largeHash === undefined) {
      content = this.#scratch.subarray(headroom, headroom + size);
      hashInPlace(content, type, entries.oids, entry * oidBytes);
    } else {
      entries.setOid(entry, this.#largeHash.digest());
      this.#largeHash = undefined;
    }
    this.#onObject(entry, type, entries.oid(entry), content);
  }
}

function tooLarge(offset: number, limit: number): GitFault {
  return new GitFault(
    `the object at offset ${offset} is larger than ${Math.floor(limit / 1024 / 1024)} MiB, which is the limit here`,
  );
}

/** For messages: `blob 6b1f…`. */
export function describeObject(type: number, oid: Buffer): string {
  return `${typeName(type)} ${oid.toString('hex')}`;
}
