import { GitFault } from '#shared/git/git-fault.ts';
import { hashInPlace, headroom } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { applyDelta, readDeltaSizes } from '#shared/git/packs/delta.ts';
import type { EntryTable } from '#shared/git/packs/entry-table.ts';
import { Inflater } from '#shared/git/packs/inflater.ts';
import { OidTable } from '#shared/git/packs/oid-table.ts';
import type { ObjectSink, PackLimits } from '#shared/git/packs/pack-scanner.ts';
import type { RandomAccess } from '#shared/git/packs/random-access.ts';

/** An object on the way from a base to the deltas above it. */
interface Frame {
  entry: number;
  /** Undefined when it was given up to stay within memory, and must be made again. */
  data: Buffer | undefined;
  /** Next deltas to resolve on it: those that name it by offset, and those that name it by id. */
  nextByOffset: number;
  nextByOid: number;
}

const heldBytes = 48 * 1024 * 1024;
const pieceBytes = 1024 * 1024;
const freeWorkBytes = 2 * 1024 * 1024 * 1024;
const workPerPackByte = 1000;
const longestChain = 4096;

/** Bytes that deltas may make in all: a pack of a kilobyte can otherwise keep a machine busy for minutes. */
export function largestDeltaWork(packBytes: number): number {
  return freeWorkBytes + packBytes * workPerPackByte;
}

/**
 * Resolves the deltas of a pack depth first: each base is inflated once and everything on top of it made while it is at
 * hand. Memory: one object and its base, and a bounded rest of the chain below.
 */
export class DeltaResolver {
  /** Deltas that have no base yet. */
  unresolved = 0;
  readonly #entries: EntryTable;
  readonly #file: RandomAccess;
  readonly #limits: PackLimits;
  readonly #onObject: ObjectSink;
  readonly #breathe: () => Promise<void> | undefined;
  readonly #inflater = new Inflater();
  readonly #firstByOffset: Int32Array;
  readonly #firstByOid: Int32Array;
  readonly #next: Int32Array;
  /** Ids that reference deltas are based on; the number indexes `#firstByOid`. */
  readonly #wantedBases = new OidTable();
  readonly #packEnd: number;
  readonly #largestWork: number;
  #work = 0;
  #delta: Buffer = Buffer.allocUnsafeSlow(pieceBytes);
  #result: Buffer = Buffer.allocUnsafeSlow(headroom + pieceBytes);
  #held = 0;

  /**
   * @param packEnd where the last entry ends
   * @param breathe called between objects; what it returns is awaited, so that others get their turn
   */
  constructor(
    entries: EntryTable,
    file: RandomAccess,
    packEnd: number,
    limits: PackLimits,
    onObject: ObjectSink,
    breathe: () => Promise<void> | undefined,
  ) {
    this.#entries = entries;
    this.#file = file;
    this.#packEnd = packEnd;
    this.#limits = limits;
    this.#onObject = onObject;
    this.#breathe = breathe;
    this.#largestWork = largestDeltaWork(packEnd);
    this.#firstByOffset = new Int32Array(entries.count).fill(-1);
    this.#next = new Int32Array(entries.count).fill(-1);
    const firstByOid: number[] = [];
    for (let entry = entries.count - 1; entry >= 0; entry--) {
      const type = entries.types[entry];
      if (type === offsetDelta) {
        const base = entries.bases[entry] ?? 0;
        this.#next[entry] = this.#firstByOffset[base] ?? -1;
        this.#firstByOffset[base] = entry;
        this.unresolved++;
      } else if (type === referenceDelta) {
        const number = this.#wantedBases.add(entries.oid(entry));
        this.#next[entry] = firstByOid[number] ?? -1;
        firstByOid[number] = entry;
        this.unresolved++;
      }
    }
    this.#firstByOid = Int32Array.from(firstByOid);
  }

  /** Everything whose chain begins with a whole object of the pack. */
  async resolveWithin(): Promise<void> {
    const wholeCount = this.#entries.count;
    for (let entry = 0; entry < wholeCount && this.unresolved > 0; entry++) {
      if ((this.#entries.types[entry] ?? 0) >= offsetDelta || this.#wasDelta(entry)) continue;
      const frame = this.#open(entry, undefined);
      if (frame !== undefined) await this.#climb(frame, () => this.#inflateWhole(entry));
    }
  }

  /** Ids of bases that deltas still wait for. */
  missingBases(): Buffer[] {
    const missing: Buffer[] = [];
    for (let number = 0; number < this.#wantedBases.size; number++) {
      if ((this.#firstByOid[number] ?? -1) >= 0) missing.push(Buffer.from(this.#wantedBases.oid(number)));
    }
    return missing;
  }

  /** Everything on top of an object that is not in the pack. False when nothing waits for it any more. */
  async resolveOnto(oid: Buffer, type: number, read: () => Buffer): Promise<boolean> {
    const number = this.#wantedBases.find(oid);
    const first = number < 0 ? -1 : (this.#firstByOid[number] ?? -1);
    if (first < 0) return false;
    this.#firstByOid[number] = -1;
    await this.#climb({ entry: -1, data: undefined, nextByOffset: -1, nextByOid: first }, read, type);
    return true;
  }

  close(): void {
    this.#inflater.close();
  }

  /** A resolved delta carries a real type by now, but no chain begins there. */
  #wasDelta(entry: number): boolean {
    return (this.#entries.bases[entry] ?? -1) !== -1;
  }

  /** A frame for an entry of which the id is known; undefined when no delta is based on it. */
  #open(entry: number, data: Buffer | undefined): Frame | undefined {
    const number = this.#wantedBases.size === 0 ? -1 : this.#wantedBases.find(this.#entries.oids, entry * 20);
    const nextByOid = number < 0 ? -1 : (this.#firstByOid[number] ?? -1);
    if (number >= 0) this.#firstByOid[number] = -1;
    const nextByOffset = this.#firstByOffset[entry] ?? -1;
    return nextByOid < 0 && nextByOffset < 0 ? undefined : { entry, data, nextByOffset, nextByOid };
  }

  async #climb(root: Frame, readRoot: () => Buffer, rootType = this.#entries.types[root.entry] ?? 0): Promise<void> {
    const frames = [root];
    this.#held = 0;
    for (let top = frames.at(-1); top !== undefined; top = frames.at(-1)) {
      const pause = this.#breathe();
      if (pause !== undefined) await pause;
      const child = top.nextByOffset >= 0 ? top.nextByOffset : top.nextByOid;
      if (child < 0) {
        this.#held -= top.data?.length ?? 0;
        frames.pop();
        continue;
      }
      if (top.nextByOffset >= 0) top.nextByOffset = this.#next[child] ?? -1;
      else top.nextByOid = this.#next[child] ?? -1;
      if (top.data === undefined) this.#materialize(frames, readRoot);
      const made = this.#make(child, top.data ?? Buffer.alloc(0), true);
      const above = this.#finish(child, rootType, made);
      if (above === undefined) continue;
      if (frames.length >= longestChain) throw new GitFault(`the pack has a chain of more than ${longestChain} deltas`);
      // The buffer is used again for the next object unless it was made for this one.
      above.data = made.shared ? Buffer.from(made.content) : made.content;
      this.#held += above.data.length;
      frames.push(above);
      this.#giveUp(frames);
    }
  }

  /** Drops what is far below the top once too much is held. */
  #giveUp(frames: Frame[]): void {
    for (let i = 0; this.#held > heldBytes && i < frames.length - 1; i++) {
      const frame = frames[i];
      if (frame?.data === undefined) continue;
      this.#held -= frame.data.length;
      frame.data = undefined;
    }
  }

  /** Makes the data of the topmost frame again, from the nearest one below that still has its own. */
  #materialize(frames: Frame[], readRoot: () => Buffer): void {
    let have = frames.length - 1;
    while (have > 0 && frames[have]?.data === undefined) have--;
    let data = frames[have]?.data ?? readRoot();
    for (let i = have + 1; i < frames.length; i++) data = this.#make(frames[i]?.entry ?? 0, data, false).content;
    const top = frames.at(-1);
    if (top === undefined) return;
    top.data = data;
    this.#held += data.length;
    this.#giveUp(frames);
  }

  /** @param share whether the result may be put where the next one will overwrite it */
  #make(entry: number, base: Buffer, share: boolean): { content: Buffer; withHeadroom: Buffer; shared: boolean } {
    const deltaSize = this.#entries.sizes[entry] ?? 0;
    if (this.#delta.length < deltaSize + 1) this.#delta = Buffer.allocUnsafeSlow(deltaSize + 1);
    this.#inflate(entry, this.#delta, 0);
    const sizes = readDeltaSizes(this.#delta, deltaSize);
    if (sizes.resultSize > this.#limits.objectBytes) {
      throw new GitFault(
        `the pack has an object of more than ${Math.floor(this.#limits.objectBytes / 1024 / 1024)} MiB, which is the limit here`,
      );
    }
    this.#work += sizes.resultSize;
    if (this.#work > this.#largestWork) throw new GitFault('the deltas of the pack unfold to far more than the pack is worth');
    const shared = share && headroom + sizes.resultSize <= this.#result.length;
    const withHeadroom = shared ? this.#result : Buffer.allocUnsafeSlow(headroom + sizes.resultSize);
    applyDelta(base, this.#delta, sizes, deltaSize, withHeadroom, headroom);
    if (this.#delta.length > 16 * pieceBytes) this.#delta = Buffer.allocUnsafeSlow(pieceBytes);
    return { content: withHeadroom.subarray(headroom, headroom + sizes.resultSize), withHeadroom, shared };
  }

  #finish(entry: number, type: number, made: { content: Buffer; withHeadroom: Buffer }): Frame | undefined {
    const oid = hashInPlace(made.withHeadroom, headroom, headroom + made.content.length, type);
    const entries = this.#entries;
    // Marks reference deltas too as something that is not the beginning of a chain.
    if (entries.types[entry] === referenceDelta) entries.bases[entry] = -2;
    entries.setOid(entry, oid);
    entries.types[entry] = type;
    this.unresolved--;
    this.#onObject(entry, type, oid, made.content);
    return this.#open(entry, undefined);
  }

  #inflateWhole(entry: number): Buffer {
    const size = this.#entries.sizes[entry] ?? 0;
    const data = Buffer.allocUnsafeSlow(size + 1);
    this.#inflate(entry, data, 0);
    return data.subarray(0, size);
  }

  /** What the scanner has found sound; the target has one byte more than the data. */
  #inflate(entry: number, target: Buffer, targetStart: number): void {
    const entries = this.#entries;
    const size = entries.sizes[entry] ?? 0;
    const end = entry + 1 < this.#firstByOffset.length ? (entries.offsets[entry + 1] ?? 0) : this.#packEnd;
    let position = (entries.offsets[entry] ?? 0) + (entries.headLengths[entry] ?? 0);
    let produced = 0;
    this.#inflater.reset();
    while (position < end) {
      const raw = this.#file.read(position, Math.min(end - position, pieceBytes));
      this.#inflater.push(raw, 0, raw.length, target, targetStart + produced, targetStart + size + 1);
      if (this.#inflater.consumed === 0) break;
      position += this.#inflater.consumed;
      produced += this.#inflater.produced;
    }
    if (produced !== size) throw new Error('a pack file in quarantine has changed');
  }
}
