import { GitFault } from '#shared/git/git-fault.ts';
import { hashInPlace, headroom } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { OidTable, oidBytes } from '#shared/git/objects/oid-table.ts';
import { applyDelta, readDeltaSizes } from '#shared/git/packs/format/delta.ts';
import type { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { Inflater } from '#shared/git/packs/format/inflater.ts';
import type { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import type { ObjectSink, PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import type { RandomAccess } from '#shared/git/packs/reading/random-access.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** An object on the way from a base to the deltas above it. */
interface Frame {
  entry: number;
  /** Undefined when it was given up to stay within memory, and must be made again. */
  data: Buffer | undefined;
  /** Of `data`, where it has memory of its own; 0 where it lies on the stack. */
  ownBytes: number;
  /** Where the stack ended before it. */
  below: number;
  /** Next deltas to resolve on it: those that name it by offset, and those that name it by id. */
  nextByOffset: number;
  nextByOid: number;
}

/** An object as it was made: its content, and free bytes in front of it for `hashInPlace`. */
interface Made {
  content: Buffer;
  buffer: Buffer;
  start: number;
}

/** Objects lie on a stack, as depth first means last in, first out; only large ones get memory of their own. */
const largestStack = 4 * 1024 * 1024;
/** A small pack gets a small stack. */
const stackBytesEach = 4096;
/** Of memory of their own. */
const heldBytes = 48 * 1024 * 1024;
const pieceBytes = 64 * 1024;
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
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #deltas: DeltaCache;
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
  readonly #stack: Buffer;
  #stackEnd = 0;
  /** What a large object was made in that nothing is based on. */
  #spare: Buffer = Buffer.alloc(0);
  #held = 0;

  /**
   * @param deltas what the scanner has kept
   * @param packEnd where the last entry ends
   * @param yieldToEventLoop called between objects; what it returns is awaited, so that others get their turn
   */
  constructor(
    entries: EntryTable,
    file: RandomAccess,
    deltas: DeltaCache,
    packEnd: number,
    limits: PackLimits,
    onObject: ObjectSink,
    yieldToEventLoop: YieldToEventLoop,
  ) {
    this.#entries = entries;
    this.#file = file;
    this.#deltas = deltas;
    this.#packEnd = packEnd;
    this.#limits = limits;
    this.#onObject = onObject;
    this.#yieldToEventLoop = yieldToEventLoop;
    this.#largestWork = largestDeltaWork(packEnd);
    this.#stack = Buffer.allocUnsafeSlow(Math.min(largestStack, pieceBytes + entries.count * stackBytesEach));
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
      const frame = this.#open(entry);
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
    const frame = { entry: -1, data: undefined, ownBytes: 0, below: 0, nextByOffset: -1, nextByOid: first };
    await this.#climb(frame, read, type);
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
  #open(entry: number): Frame | undefined {
    const number = this.#wantedBases.size === 0 ? -1 : this.#wantedBases.find(this.#entries.oids, entry * oidBytes);
    const nextByOid = number < 0 ? -1 : (this.#firstByOid[number] ?? -1);
    if (number >= 0) this.#firstByOid[number] = -1;
    const nextByOffset = this.#firstByOffset[entry] ?? -1;
    if (nextByOid < 0 && nextByOffset < 0) return undefined;
    return { entry, data: undefined, ownBytes: 0, below: this.#stackEnd, nextByOffset, nextByOid };
  }

  async #climb(root: Frame, readRoot: () => Buffer, rootType = this.#entries.types[root.entry] ?? 0): Promise<void> {
    const frames = [root];
    this.#held = 0;
    this.#stackEnd = 0;
    for (let top = frames.at(-1); top !== undefined; top = frames.at(-1)) {
      const pause = this.#yieldToEventLoop();
      if (pause !== undefined) await pause;
      const child = top.nextByOffset >= 0 ? top.nextByOffset : top.nextByOid;
      if (child < 0) {
        this.#held -= top.ownBytes;
        this.#stackEnd = top.below;
        frames.pop();
        continue;
      }
      if (top.nextByOffset >= 0) top.nextByOffset = this.#next[child] ?? -1;
      else top.nextByOid = this.#next[child] ?? -1;
      if (top.data === undefined) this.#materialize(frames, readRoot);
      const made = this.#make(child, top.data ?? Buffer.alloc(0), true);
      const above = this.#finish(child, rootType, made);
      // What nothing is based on is overwritten by the next.
      if (above === undefined) continue;
      if (frames.length >= longestChain) throw new GitFault(`the pack has a chain of more than ${longestChain} deltas`);
      above.data = made.content;
      if (made.buffer === this.#stack) {
        this.#stackEnd = made.start + made.content.length;
      } else {
        above.ownBytes = made.buffer.length;
        this.#spare = Buffer.alloc(0);
      }
      this.#held += above.ownBytes;
      frames.push(above);
      this.#giveUp(frames);
    }
  }

  /** Drops what is far below the top once too much is held. */
  #giveUp(frames: Frame[]): void {
    for (let i = 0; this.#held > heldBytes && i < frames.length - 1; i++) {
      const frame = frames[i];
      if (frame === undefined || frame.ownBytes === 0) continue;
      this.#held -= frame.ownBytes;
      frame.ownBytes = 0;
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
    top.ownBytes = data.length;
    this.#held += data.length;
    this.#giveUp(frames);
  }

  /** @param passing whether the next one may overwrite the result, unless it is pushed */
  #make(entry: number, base: Buffer, passing: boolean): Made {
    const cachedAt = this.#entries.cachedAt[entry] ?? -1;
    const delta = cachedAt < 0 ? this.#inflateDelta(entry) : this.#deltas.pageOf(cachedAt);
    const deltaStart = cachedAt < 0 ? 0 : this.#deltas.startInPage(cachedAt);
    const deltaEnd = deltaStart + (this.#entries.sizes[entry] ?? 0);
    const sizes = readDeltaSizes(delta, deltaEnd, deltaStart);
    if (sizes.resultSize > this.#limits.objectBytes) {
      throw new GitFault(
        `the pack has an object of more than ${Math.floor(this.#limits.objectBytes / 1024 / 1024)} MiB, which is the limit here`,
      );
    }
    this.#work += sizes.resultSize;
    if (this.#work > this.#largestWork) throw new GitFault('the deltas of the pack unfold to far more than the pack is worth');
    const fits = passing && this.#stackEnd + headroom + sizes.resultSize <= this.#stack.length;
    const buffer = fits ? this.#stack : this.#largeBuffer(headroom + sizes.resultSize, passing);
    const start = headroom + (fits ? this.#stackEnd : 0);
    applyDelta(base, delta, sizes, deltaEnd, buffer, start);
    return { content: buffer.subarray(start, start + sizes.resultSize), buffer, start };
  }

  #largeBuffer(bytes: number, passing: boolean): Buffer {
    if (!passing) return Buffer.allocUnsafeSlow(bytes);
    if (this.#spare.length < bytes || this.#spare.length > 2 * bytes) this.#spare = Buffer.allocUnsafeSlow(bytes);
    return this.#spare;
  }

  #finish(entry: number, type: number, { content, buffer, start }: Made): Frame | undefined {
    const entries = this.#entries;
    hashInPlace(buffer, start, start + content.length, type, entries.oids, entry * oidBytes);
    // Marks reference deltas too as something that is not the beginning of a chain.
    if (entries.types[entry] === referenceDelta) entries.bases[entry] = -2;
    entries.types[entry] = type;
    this.unresolved--;
    this.#onObject(entry, type, entries.oid(entry), content);
    return this.#open(entry);
  }

  #inflateWhole(entry: number): Buffer {
    const size = this.#entries.sizes[entry] ?? 0;
    const data = Buffer.allocUnsafeSlow(size + 1);
    this.#inflate(entry, data);
    return data.subarray(0, size);
  }

  /** Overwritten by the next one. */
  #inflateDelta(entry: number): Buffer {
    const room = Math.max(pieceBytes, (this.#entries.sizes[entry] ?? 0) + 1);
    // What a large delta needed is not kept for small ones.
    if (this.#delta.length < room || this.#delta.length > 16 * 1024 * 1024) this.#delta = Buffer.allocUnsafeSlow(room);
    this.#inflate(entry, this.#delta);
    return this.#delta;
  }

  /** What the scanner has found sound; the target has one byte more than the data. */
  #inflate(entry: number, target: Buffer): void {
    const entries = this.#entries;
    const size = entries.sizes[entry] ?? 0;
    const end = entry + 1 < this.#firstByOffset.length ? (entries.offsets[entry + 1] ?? 0) : this.#packEnd;
    let position = (entries.offsets[entry] ?? 0) + (entries.headLengths[entry] ?? 0);
    let produced = 0;
    this.#inflater.reset();
    while (position < end) {
      const raw = this.#file.read(position, Math.min(end - position, pieceBytes));
      this.#inflater.push(raw, 0, raw.length, target, produced, size + 1);
      if (this.#inflater.consumed === 0) break;
      position += this.#inflater.consumed;
      produced += this.#inflater.produced;
    }
    if (produced !== size) throw new Error('a pack file in quarantine has changed');
  }
}
