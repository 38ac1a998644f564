import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import type { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import { oidBytes } from '#shared/git/packs/oid-table.ts';
import { encodeBaseDistance, encodeEntryHeader, encodePackHeader } from '#shared/git/packs/pack-entry.ts';
import type { EntryLocation } from '#shared/git/packs/pack-lookup.ts';
import type { Selection } from '#shared/git/upload-pack/object-selection.ts';

export interface PackForm {
  /** Deltas may be based on what the client has. */
  thin: boolean;
  /** The client understands deltas that name their base by its distance. */
  offsetDeltas: boolean;
}

const pieceBytes = 256 * 1024;

type Write = (chunk: Uint8Array<ArrayBuffer>) => Promise<void>;
type Breathe = () => Promise<void> | undefined;

/**
 * Writes the selected objects as a pack. What is stored is copied as it stands, compressed and as a delta, wherever the
 * client will have the base; only the rest is compressed anew.
 */
export async function writePack(
  database: ObjectDatabase,
  selection: Selection,
  form: PackForm,
  write: Write,
  breathe: Breathe,
): Promise<void> {
  const writer = new PackWriter(database, selection, form, write);
  await writer.header();
  for (const entry of writer.plan()) {
    await writer.entry(entry);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  await writer.trailer();
}

interface PlannedEntry extends EntryLocation {
  number: number;
}

class PackWriter {
  readonly #database: ObjectDatabase;
  readonly #selection: Selection;
  readonly #form: PackForm;
  readonly #write: Write;
  readonly #hash = createHash('sha1');
  /** By number: where it begins in what is written; 0 for not yet. */
  readonly #writtenAt: Float64Array;
  #position = 0;
  #piece = new Uint8Array(pieceBytes);
  #used = 0;

  constructor(database: ObjectDatabase, selection: Selection, form: PackForm, write: Write) {
    this.#database = database;
    this.#selection = selection;
    this.#form = form;
    this.#write = write;
    this.#writtenAt = new Float64Array(selection.table.size);
  }

  /** In the order in which they are stored: reading goes straight on, and bases come before what is based on them. */
  plan(): PlannedEntry[] {
    const { table, send } = this.#selection;
    const rank = new Map(this.#database.packs.map((pack, i) => [pack, i]));
    const entries = send.map((number): PlannedEntry => {
      const found = this.#database.find(table.oids, number * oidBytes);
      if (found === undefined) throw new Error(`object ${table.oid(number).toString('hex')} is missing`);
      return { pack: found.pack, offset: found.offset, number };
    });
    return entries.sort((a, b) => (a.pack === b.pack ? a.offset - b.offset : (rank.get(a.pack) ?? 0) - (rank.get(b.pack) ?? 0)));
  }

  async header(): Promise<void> {
    await this.#append(encodePackHeader(this.#selection.send.length));
  }

  async entry(entry: PlannedEntry): Promise<void> {
    const { pack, offset, number } = entry;
    const { type, size, length, baseDistance, baseOidAt } = pack.headerAt(offset);
    const start = this.#position;
    if (type === offsetDelta || type === referenceDelta) {
      const base = this.#findBase(entry, type, baseDistance, baseOidAt);
      if (base === undefined) {
        await this.#appendWhole(entry);
      } else {
        await this.#append(encodeEntryHeader(base.distance === undefined ? referenceDelta : offsetDelta, size));
        await this.#append(base.distance === undefined ? base.oid : encodeBaseDistance(base.distance));
        await this.#copy(entry, offset + length);
      }
    } else {
      await this.#copy(entry, offset);
    }
    this.#writtenAt[number] = start;
  }

  async trailer(): Promise<void> {
    this.#hash.update(this.#piece.subarray(0, this.#used));
    const last = new Uint8Array(this.#used + oidBytes);
    last.set(this.#piece.subarray(0, this.#used));
    last.set(this.#hash.digest(), this.#used);
    await this.#write(last);
  }

  /** The base of a stored delta if the client will have it; undefined when it will not. */
  #findBase(
    { pack, offset }: EntryLocation,
    type: number,
    baseDistance: number,
    baseOidAt: number,
  ): { oid: Buffer; distance: number | undefined } | undefined {
    const { index } = pack;
    const oid =
      type === offsetDelta
        ? index.oidAt(index.positionOfRank(index.rankOf(offset - baseDistance)))
        : Buffer.from(pack.bytes.read(offset + baseOidAt, oidBytes));
    const number = this.#selection.table.find(oid);
    if (number < 0) return undefined;
    const at = this.#writtenAt[number] ?? 0;
    if (at > 0) return { oid, distance: this.#form.offsetDeltas ? this.#position - at : undefined };
    return this.#form.thin && this.#selection.has(number) ? { oid, distance: undefined } : undefined;
  }

  async #appendWhole(entry: EntryLocation): Promise<void> {
    const { type, data } = this.#database.readAt(entry);
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

  /** Gives a promise only when a piece is full. The bytes are taken over at once. */
  #append(bytes: Uint8Array): Promise<void> | undefined {
    this.#position += bytes.length;
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
