import { createHash } from 'node:crypto';
import { crc32, deflateSync } from 'node:zlib';
import { startObjectHash } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';
import type { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { encodeBaseDistance, encodeEntryHeader, encodePackHeader } from '#shared/git/packs/format/pack-entry.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { OpenPack } from '#shared/git/packs/reading/open-pack.ts';
import type { EntryLocation } from '#shared/git/packs/reading/pack-lookup.ts';
import type { PackContents } from '#shared/git/packs/writing/pack-contents.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** What form a pack may have. */
export interface PackForm {
  /** Deltas may be based on objects that the client has. */
  thin: boolean;
  /** The client understands deltas that name their base by its distance. */
  offsetDeltas: boolean;
  /** The longest chain of deltas. Default: no limit beyond that of the stored packs. */
  longestChain?: number;
}

const pieceBytes = 256 * 1024;

type Write = (chunk: Uint8Array<ArrayBuffer>) => Promise<void>;
/** A pack to be written. */
export interface PackToWrite {
  contents: PackContents;
  form: PackForm;
  /** Gets the pack in pieces. */
  write: Write;
  yieldToEventLoop: YieldToEventLoop;
  /** Gets an entry for each object, for an index. Everything that is copied is then checked first. */
  entries?: EntryTable;
}

/**
 * Writes objects as a pack. Stored entries are copied as they are, compressed and as deltas, where the receiver will have the
 * base; only the rest is compressed again.
 *
 * @returns the pack's trailing checksum
 * @throws Error when `entries` is given and a stored entry is broken
 */
export async function writePack(database: ObjectDatabase, pack: PackToWrite): Promise<Buffer> {
  const writer = new PackWriter(database, pack);
  await writer.header();
  let reading: OpenPack | undefined;
  for (const entry of writer.plan()) {
    // There may be thousands of packs. They are read one after the other, and only one of them is open.
    if (entry.pack !== reading) reading?.close();
    reading = entry.pack;
    await writer.entry(entry);
    const pause = pack.yieldToEventLoop();
    if (pause !== undefined) await pause;
  }
  return await writer.trailer();
}

interface PlannedEntry extends EntryLocation {
  number: number;
}

class PackWriter {
  readonly #database: ObjectDatabase;
  readonly #contents: PackContents;
  readonly #form: PackForm;
  readonly #write: Write;
  readonly #entries: EntryTable | undefined;
  readonly #hash = createHash('sha1');
  /** By number: its offset in the new pack; 0 until it is written. */
  readonly #writtenAt: Float64Array;
  /** By number: the length of its delta chain in the new pack. */
  readonly #chains: Uint16Array;
  #position = 0;
  /** Of the current entry. */
  #crc = 0;
  #piece = new Uint8Array(pieceBytes);
  #used = 0;

  constructor(database: ObjectDatabase, { contents, form, write, entries }: PackToWrite) {
    this.#database = database;
    this.#contents = contents;
    this.#form = form;
    this.#write = write;
    this.#entries = entries;
    this.#writtenAt = new Float64Array(contents.table.size);
    this.#chains = new Uint16Array(contents.table.size);
  }

  /** The entries in the order in which they are stored: reading is sequential, and bases come before their deltas. */
  plan(): PlannedEntry[] {
    const { table, send } = this.#contents;
    const rank = new Map(this.#database.packs.map((pack, i) => [pack, i]));
    const entries = send.map((number): PlannedEntry => {
      const found = this.#database.find(table.oids, number * oidBytes);
      if (found === undefined) throw new Error(`object ${table.oid(number).toString('hex')} is missing`);
      return { pack: found.pack, offset: found.offset, number };
    });
    return entries.sort((a, b) => (a.pack === b.pack ? a.offset - b.offset : (rank.get(a.pack) ?? 0) - (rank.get(b.pack) ?? 0)));
  }

  async header(): Promise<void> {
    await this.#append(encodePackHeader(this.#contents.send.length));
  }

  async entry(entry: PlannedEntry): Promise<void> {
    const { pack, offset, number } = entry;
    if (this.#entries !== undefined) this.#check(entry);
    const { type, size, length, baseDistance, baseOidAt } = pack.headerAt(offset);
    const start = this.#position;
    this.#crc = 0;
    if (type === offsetDelta || type === referenceDelta) {
      const base = this.#findBase(entry, type, baseDistance, baseOidAt);
      if (base === undefined) {
        await this.#appendWhole(entry);
      } else {
        await this.#append(encodeEntryHeader(base.distance === undefined ? referenceDelta : offsetDelta, size));
        await this.#append(base.distance === undefined ? base.oid : encodeBaseDistance(base.distance));
        await this.#copy(entry, offset + length);
        this.#chains[number] = base.chain + 1;
      }
    } else {
      await this.#copy(entry, offset);
    }
    this.#writtenAt[number] = start;
    if (this.#entries === undefined) return;
    const written = this.#entries.add(start, type);
    this.#entries.setOid(written, this.#contents.table.oids, number * oidBytes);
    this.#entries.crcs[written] = this.#crc;
  }

  async trailer(): Promise<Buffer> {
    this.#hash.update(this.#piece.subarray(0, this.#used));
    const last = new Uint8Array(this.#used + oidBytes);
    last.set(this.#piece.subarray(0, this.#used));
    const checksum = this.#hash.digest();
    last.set(checksum, this.#used);
    await this.#write(last);
    return checksum;
  }

  /** The base of a stored delta; undefined when the receiver will not have it. */
  #findBase(
    { pack, offset }: EntryLocation,
    type: number,
    baseDistance: number,
    baseOidAt: number,
  ): { oid: Buffer; distance: number | undefined; chain: number } | undefined {
    const { index } = pack;
    const oid =
      type === offsetDelta
        ? index.oidAt(index.positionOfRank(index.rankOf(offset - baseDistance)))
        : Buffer.from(pack.bytes.read(offset + baseOidAt, oidBytes));
    const number = this.#contents.table.find(oid);
    if (number < 0) return undefined;
    const at = this.#writtenAt[number] ?? 0;
    const chain = this.#chains[number] ?? 0;
    if (at > 0 && chain >= (this.#form.longestChain ?? Number.POSITIVE_INFINITY)) return undefined;
    if (at > 0) return { oid, distance: this.#form.offsetDeltas ? this.#position - at : undefined, chain };
    return this.#form.thin && this.#contents.has(number) ? { oid, distance: undefined, chain } : undefined;
  }

  /** @throws Error when the entry does not have the checksum that the index states */
  #check({ pack, offset }: EntryLocation): void {
    const end = pack.endOf(offset);
    let crc = 0;
    for (let position = offset; position < end; ) {
      const bytes = pack.bytes.read(position, Math.min(end - position, pieceBytes));
      position += bytes.length;
      crc = crc32(bytes, crc);
    }
    const { index } = pack;
    if (crc !== index.crcAt(index.positionOfRank(index.rankOf(offset))))
      throw new Error(`pack ${pack.key} is broken at ${offset}`);
  }

  async #appendWhole(entry: PlannedEntry): Promise<void> {
    const { type, data } = this.#database.readAt(entry);
    if (this.#entries !== undefined) {
      const oid = startObjectHash(type, data.length).update(data).digest();
      if (!oid.equals(this.#contents.table.oid(entry.number)))
        throw new Error(`pack ${entry.pack.key} is broken: object ${this.#contents.table.oid(entry.number).toString('hex')}`);
    }
    await this.#append(encodeEntryHeader(type, data.length));
    await this.#append(deflateSync(data));
  }

  async #copy({ pack, offset }: EntryLocation, from: number): Promise<void> {
    const end = pack.endOf(offset);
    for (let position = from; position < end; ) {
      const bytes = pack.bytes.read(position, Math.min(end - position, pieceBytes));
      position += bytes.length;
      const full = this.#append(bytes);
      if (full !== undefined) await full;
    }
  }

  /** Copies the bytes. Returns a promise only when a piece is full. */
  #append(bytes: Uint8Array): Promise<void> | undefined {
    this.#position += bytes.length;
    if (this.#entries !== undefined) this.#crc = crc32(bytes, this.#crc);
    const full: Uint8Array<ArrayBuffer>[] = [];
    for (let at = 0; at < bytes.length; ) {
      const part = bytes.subarray(at, at + pieceBytes - this.#used);
      this.#piece.set(part, this.#used);
      this.#used += part.length;
      at += part.length;
      if (this.#used < pieceBytes) break;
      this.#hash.update(this.#piece);
      full.push(this.#piece);
      this.#piece = new Uint8Array(pieceBytes);
      this.#used = 0;
    }
    return full.length === 0 ? undefined : this.#flush(full);
  }

  async #flush(pieces: readonly Uint8Array<ArrayBuffer>[]): Promise<void> {
    for (const piece of pieces) await this.#write(piece);
  }
}
