import { createHash, type Hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { GitFault } from '#shared/git/git-fault.ts';
import { hashInPlace, headroom, startObjectHash } from '#shared/git/objects/hash-object.ts';
import { objectTypes, offsetDelta, referenceDelta, typeName } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { Inflater } from '#shared/git/packs/format/inflater.ts';
import { emptyEntryHeader, packHeaderBytes, packTrailerBytes, readEntryHeader } from '#shared/git/packs/format/pack-entry.ts';
import type { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';

export interface PackLimits {
  /** Of the pack as sent. */
  packBytes: number;
  /** Of one object, inflated. */
  objectBytes: number;
  /** How many objects one pack may bring. */
  objects: number;
}

/** Told of each whole object once its id is known. Both are valid during the call only; no content for a blob too large to hold. */
export type ObjectSink = (entry: number, type: number, oid: Buffer, content: Buffer | undefined) => void;

/** Blobs above it are hashed piece by piece. No other object may be larger. */
const largestHeld = 16 * 1024 * 1024;
const pieceBytes = 64 * 1024;

type State = 'header' | 'entry' | 'data' | 'trailer' | 'done';

/**
 * Reads a pack while it arrives, in pieces of any size: finds the entries, checks sizes and checksum, and hashes every
 * object that is whole. Deltas are only found; they are resolved when all of the pack is there.
 */
export class PackScanner {
  readonly entries = new EntryTable();
  /** The trailing checksum, once `done`. */
  checksum: Buffer | undefined;
  readonly #limits: PackLimits;
  readonly #onObject: ObjectSink;
  readonly #deltas: DeltaCache;
  readonly #inflater = new Inflater();
  readonly #packHash = createHash('sha1');
  readonly #header = emptyEntryHeader();
  #state: State = 'header';
  #expected = 0;
  /** Position in the pack of the first byte of the piece at hand. */
  #origin = 0;
  /** The beginning of a head of which the end has not arrived. */
  #pending: Buffer = Buffer.alloc(0);
  #scratch: Buffer = Buffer.allocUnsafeSlow(headroom + pieceBytes);
  #produced = 0;
  /** Where in the piece at hand what belongs to the entry begins, as far as its CRC does not cover it yet. */
  #uncovered = 0;
  /** Of a blob too large to hold. */
  #largeHash: Hash | undefined;

  /** @param deltas keeps what fits, so that it need not be inflated again when the deltas are resolved */
  constructor(limits: PackLimits, deltas: DeltaCache, onObject: ObjectSink) {
    this.#limits = limits;
    this.#deltas = deltas;
    this.#onObject = onObject;
  }

  /** The pack has been read to its last byte, and its checksum is right. */
  get done(): boolean {
    return this.#state === 'done';
  }

  /** @throws GitFault when this is not a pack, or it breaks a limit */
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
    if (this.#state === 'done' && at < chunk.length) throw new GitFault('there is garbage after the pack');
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

  /** Takes what it can from `at` on. Where it came to, or -1 when more must arrive first. */
  #step(chunk: Buffer, at: number): number {
    switch (this.#state) {
      case 'header':
        return this.#takeHeader(chunk, at);
      case 'entry':
        return this.#takeEntry(chunk, at);
      case 'data':
        if (at < chunk.length) return this.#takeData(chunk, at);
        this.#cover(chunk, at);
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

  #takeHeader(chunk: Buffer, at: number): number {
    if (chunk.length - at < packHeaderBytes) return -1;
    if (chunk.toString('latin1', at, at + 4) !== 'PACK') throw new GitFault('this is not a pack');
    const version = chunk.readUInt32BE(at + 4);
    if (version !== 2 && version !== 3) throw new GitFault(`packs of version ${version} are not known here`);
    this.#expected = chunk.readUInt32BE(at + 8);
    if (this.#expected > this.#limits.objects)
      throw new GitFault(`the pack has more than ${this.#limits.objects} objects, which is the limit here`);
    this.#state = this.#expected === 0 ? 'trailer' : 'entry';
    return at + packHeaderBytes;
  }

  #takeEntry(chunk: Buffer, at: number): number {
    const { entries } = this;
    const header = this.#header;
    if (at >= chunk.length || !readEntryHeader(chunk, at, chunk.length, header)) return -1;
    const offset = this.#origin + at;
    if (header.size > this.#limits.objectBytes) throw tooLarge(offset, this.#limits.objectBytes);
    const entry = entries.add(offset, header.type);
    entries.sizes[entry] = header.size;
    entries.headLengths[entry] = header.length;
    if (header.type >= offsetDelta) entries.cachedAt[entry] = this.#deltas.place(header.size);
    if (header.type === offsetDelta) {
      const base = entries.findOffset(offset - header.baseDistance);
      if (base < 0 || base === entry) throw new GitFault(`the delta at offset ${offset} is based on nothing in the pack`);
      entries.bases[entry] = base;
    } else if (header.type === referenceDelta) {
      entries.setOid(entry, chunk, header.baseOidAt);
    } else if (header.size > largestHeld) {
      if (header.type !== objectTypes.blob) throw tooLarge(offset, largestHeld);
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

  /** Head and data of an entry mostly are in one piece: then there is one call for both. */
  #cover(chunk: Buffer, end: number): void {
    const { crcs, count } = this.entries;
    if (end > this.#uncovered) crcs[count - 1] = crc32(chunk.subarray(this.#uncovered, end), crcs[count - 1]);
    this.#uncovered = end;
  }

  #takeData(chunk: Buffer, start: number): number {
    const { entries } = this;
    const { size, type } = this.#header;
    const entry = entries.count - 1;
    const cachedAt = entries.cachedAt[entry] ?? -1;
    const output = cachedAt < 0 ? this.#scratch : this.#deltas.pageOf(cachedAt);
    const whole = cachedAt >= 0 || (type < offsetDelta && this.#largeHash === undefined);
    const contentStart = cachedAt < 0 ? headroom : this.#deltas.startInPage(cachedAt);
    const inflater = this.#inflater;
    let at = start;
    do {
      const outputStart = whole ? contentStart + this.#produced : 0;
      const outputEnd = whole ? contentStart + size + 1 : pieceBytes;
      inflater.push(chunk, at, chunk.length, output, outputStart, outputEnd);
      at += inflater.consumed;
      this.#produced += inflater.produced;
      if (this.#produced > size) throw new GitFault(`the object at offset ${entries.offsets[entry]} is larger than it states`);
      this.#largeHash?.update(this.#scratch.subarray(outputStart, outputStart + inflater.produced));
    } while (!inflater.ended && at < chunk.length);
    if (!inflater.ended) return at;
    this.#cover(chunk, at);
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
      hashInPlace(this.#scratch, headroom, headroom + size, type, entries.oids, entry * oidBytes);
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
