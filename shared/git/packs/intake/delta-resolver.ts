import { GitFault } from '#shared/git/git-fault.ts';
import { hashInPlace, headroom } from '#shared/git/objects/hash-object.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { OidTable, oidBytes } from '#shared/git/objects/oid-table.ts';
import { applyDelta, readDeltaHead } from '#shared/git/packs/format/delta.ts';
import type { EntryTable } from '#shared/git/packs/format/entry-table.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import type { DeltaCache } from '#shared/git/packs/intake/delta-cache.ts';
import type { ObjectSink, PackLimits } from '#shared/git/packs/intake/pack-scanner.ts';
import type { RandomAccess } from '#shared/git/packs/reading/random-access.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** An object on the path from the root of a delta chain to the delta that is being resolved. */
interface Frame {
  entry: number;
  /** Undefined when it was dropped to save memory; it is then built again when needed. */
  data: Buffer | undefined;
  /** Size of `data` when it has memory of its own; 0 when it is on the stack. */
  ownBytes: number;
  /** End of the stack before this object. */
  below: number;
  /** The next deltas to resolve on it: first those that name it by offset, then those that name it by id. */
  nextByOffset: number;
  nextByOid: number;
}

/** An object that was built. There are `headroom` free bytes before its content, for `hashInPlace`. */
interface BuiltObject {
  content: Buffer;
  buffer: Buffer;
  start: number;
}

/** Most objects are built on a stack, since the last one built is the first one dropped. Large ones get memory of their own. */
const largestStack = 4 * 1024 * 1024;
/** A small pack gets a small stack: so many bytes for each entry. */
const stackBytesEach = 4096;
/** How much memory of their own objects may have, before the lowest ones are dropped. */
const mostOwnBytes = 48 * 1024 * 1024;
const pieceBytes = 64 * 1024;
const freeWorkBytes = 2 * 1024 * 1024 * 1024;
const workPerPackByte = 1000;
const longestChain = 4096;

/** How many bytes deltas may produce in all. Otherwise a pack of a kilobyte can keep a machine busy for minutes. */
export function largestDeltaWork(packBytes: number): number {
  return freeWorkBytes + packBytes * workPerPackByte;
}

/** A pack whose deltas are to be resolved. */
export interface DeltaResolverOptions {
  /** The entries of the pack, which get the ids and types of the resolved objects. */
  entries: EntryTable;
  /** The pack file. */
  file: RandomAccess;
  /** Deltas that the scanner has inflated. */
  deltas: DeltaCache;
  /** Where the last entry ends. */
  packEnd: number;
  limits: PackLimits;
  /** Called with each resolved object. */
  onObject: ObjectSink;
  yieldToEventLoop: YieldToEventLoop;
}

/**
 * Resolves the deltas of a pack depth first: each base is built once, and everything based on it while it is in memory. Memory:
 * one object and its base, and a bounded part of the chain below them.
 */
export class DeltaResolver {
  /** How many deltas are not resolved yet. */
  unresolved = 0;
  readonly #entries: EntryTable;
  readonly #file: RandomAccess;
  readonly #limits: PackLimits;
  readonly #onObject: ObjectSink;
  readonly #yieldToEventLoop: YieldToEventLoop;
  readonly #deltas: DeltaCache;
  readonly #inflater = openNativeInflater();
  readonly #firstByOffset: Int32Array;
  readonly #firstByOid: Int32Array;
  readonly #next: Int32Array;
  /** Ids that reference deltas are based on. Their numbers are indexes of `#firstByOid`. */
  readonly #wantedBases = new OidTable();
  readonly #packEnd: number;
  readonly #largestWork: number;
  #work = 0;
  #delta: Buffer = Buffer.allocUnsafeSlow(pieceBytes);
  readonly #stack: Buffer;
  #stackEnd = 0;
  /** Memory of the last large object that nothing is based on, to be used again. */
  #spare: Buffer = Buffer.alloc(0);
  #ownBytes = 0;

  constructor({ entries, file, deltas, packEnd, limits, onObject, yieldToEventLoop }: DeltaResolverOptions) {
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

  /** Resolves all deltas whose chain begins with an object of this pack. */
  async resolveWithin(): Promise<void> {
    const wholeCount = this.#entries.count;
    for (let entry = 0; entry < wholeCount && this.unresolved > 0; entry++) {
      if ((this.#entries.types[entry] ?? 0) >= offsetDelta || this.#wasDelta(entry)) continue;
      const frame = this.#open(entry);
      if (frame !== undefined) await this.#resolveOn(frame, () => this.#inflateWhole(entry));
    }
  }

  /** Ids of the bases that unresolved deltas need and the pack does not have. */
  missingBases(): Buffer[] {
    const missing: Buffer[] = [];
    for (let number = 0; number < this.#wantedBases.size; number++) {
      if ((this.#firstByOid[number] ?? -1) >= 0) missing.push(Buffer.from(this.#wantedBases.oid(number)));
    }
    return missing;
  }

  /** Resolves all deltas based on an object that is not in the pack. False when none needs it any more. */
  async resolveOnto(oid: Buffer, type: number, read: () => Buffer): Promise<boolean> {
    const number = this.#wantedBases.find(oid);
    const first = number < 0 ? -1 : (this.#firstByOid[number] ?? -1);
    if (first < 0) return false;
    this.#firstByOid[number] = -1;
    const frame = { entry: -1, data: undefined, ownBytes: 0, below: 0, nextByOffset: -1, nextByOid: first };
    await this.#resolveOn(frame, read, type);
    return true;
  }

  close(): void {
    this.#inflater.close();
  }

  /** A resolved delta has the type of its object, but no chain begins with it. */
  #wasDelta(entry: number): boolean {
    return (this.#entries.bases[entry] ?? -1) !== -1;
  }

  /** A frame for an entry whose id is known; undefined when no delta is based on it. */
  #open(entry: number): Frame | undefined {
    const number = this.#wantedBases.size === 0 ? -1 : this.#wantedBases.find(this.#entries.oids, entry * oidBytes);
    const nextByOid = number < 0 ? -1 : (this.#firstByOid[number] ?? -1);
    if (number >= 0) this.#firstByOid[number] = -1;
    const nextByOffset = this.#firstByOffset[entry] ?? -1;
    if (nextByOid < 0 && nextByOffset < 0) return undefined;
    return { entry, data: undefined, ownBytes: 0, below: this.#stackEnd, nextByOffset, nextByOid };
  }

  async #resolveOn(root: Frame, readRoot: () => Buffer, rootType = this.#entries.types[root.entry] ?? 0): Promise<void> {
    const frames = [root];
    this.#ownBytes = 0;
    this.#stackEnd = 0;
    for (let top = frames.at(-1); top !== undefined; top = frames.at(-1)) {
      const pause = this.#yieldToEventLoop();
      if (pause !== undefined) await pause;
      const child = top.nextByOffset >= 0 ? top.nextByOffset : top.nextByOid;
      if (child < 0) {
        this.#ownBytes -= top.ownBytes;
        this.#stackEnd = top.below;
        frames.pop();
        continue;
      }
      if (top.nextByOffset >= 0) top.nextByOffset = this.#next[child] ?? -1;
      else top.nextByOid = this.#next[child] ?? -1;
      if (top.data === undefined) this.#rebuild(frames, readRoot);
      const built = this.#build(child, top.data ?? Buffer.alloc(0), true);
      const above = this.#finish(child, rootType, built);
      // An object that nothing is based on is overwritten by the next one.
      if (above === undefined) continue;
      if (frames.length >= longestChain) throw new GitFault(`the pack has a chain of more than ${longestChain} deltas`);
      above.data = built.content;
      if (built.buffer === this.#stack) {
        this.#stackEnd = built.start + built.content.length;
      } else {
        above.ownBytes = built.buffer.length;
        this.#spare = Buffer.alloc(0);
      }
      this.#ownBytes += above.ownBytes;
      frames.push(above);
      this.#dropLowest(frames);
    }
  }

  /** Drops objects from the bottom up while too much memory is used. */
  #dropLowest(frames: Frame[]): void {
    for (let i = 0; this.#ownBytes > mostOwnBytes && i < frames.length - 1; i++) {
      const frame = frames[i];
      if (frame === undefined || frame.ownBytes === 0) continue;
      this.#ownBytes -= frame.ownBytes;
      frame.ownBytes = 0;
      frame.data = undefined;
    }
  }

  /** Builds the object of the topmost frame again, from the nearest frame below that has its object. */
  #rebuild(frames: Frame[], readRoot: () => Buffer): void {
    let from = frames.length - 1;
    while (from > 0 && frames[from]?.data === undefined) from--;
    let data = frames[from]?.data ?? readRoot();
    for (let i = from + 1; i < frames.length; i++) data = this.#build(frames[i]?.entry ?? 0, data, false).content;
    const top = frames.at(-1);
    if (top === undefined) return;
    top.data = data;
    top.ownBytes = data.length;
    this.#ownBytes += data.length;
    this.#dropLowest(frames);
  }

  /** @param isTemporary whether the next object may overwrite this one, unless its frame is pushed */
  #build(entry: number, base: Buffer, isTemporary: boolean): BuiltObject {
    const cachedAt = this.#entries.cachedAt[entry] ?? -1;
    const delta = cachedAt < 0 ? this.#inflateDelta(entry) : this.#deltas.pageOf(cachedAt);
    const deltaStart = cachedAt < 0 ? 0 : this.#deltas.startInPage(cachedAt);
    const deltaEnd = deltaStart + (this.#entries.sizes[entry] ?? 0);
    const head = readDeltaHead(delta, deltaStart, deltaEnd);
    if (head.resultSize > this.#limits.objectBytes) {
      throw new GitFault(
        `the pack has an object of more than ${Math.floor(this.#limits.objectBytes / 1024 / 1024)} MiB, which is the limit here`,
      );
    }
    this.#work += head.resultSize;
    if (this.#work > this.#largestWork) throw new GitFault('the deltas of the pack expand to too many bytes');
    const fits = isTemporary && this.#stackEnd + headroom + head.resultSize <= this.#stack.length;
    const buffer = fits ? this.#stack : this.#largeBuffer(headroom + head.resultSize, isTemporary);
    const start = headroom + (fits ? this.#stackEnd : 0);
    applyDelta(base, delta, head, buffer, start);
    return { content: buffer.subarray(start, start + head.resultSize), buffer, start };
  }

  #largeBuffer(bytes: number, isTemporary: boolean): Buffer {
    if (!isTemporary) return Buffer.allocUnsafeSlow(bytes);
    if (this.#spare.length < bytes || this.#spare.length > 2 * bytes) this.#spare = Buffer.allocUnsafeSlow(bytes);
    return this.#spare;
  }

  #finish(entry: number, type: number, { content }: BuiltObject): Frame | undefined {
    const entries = this.#entries;
    hashInPlace(content, type, entries.oids, entry * oidBytes);
    // Marks a reference delta, too, as an entry that no chain begins with.
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

  /** The next delta overwrites it. */
  #inflateDelta(entry: number): Buffer {
    const room = Math.max(pieceBytes, (this.#entries.sizes[entry] ?? 0) + 1);
    // The memory of a large delta is not kept for small ones.
    if (this.#delta.length < room || this.#delta.length > 16 * 1024 * 1024) this.#delta = Buffer.allocUnsafeSlow(room);
    this.#inflate(entry, this.#delta);
    return this.#delta;
  }

  /** Inflates an entry that the scanner has checked. The target has one byte more than the data. */
  #inflate(entry: number, target: Buffer): void {
    const entries = this.#entries;
    const size = entries.sizes[entry] ?? 0;
    const end = entry + 1 < this.#firstByOffset.length ? (entries.offsets[entry + 1] ?? 0) : this.#packEnd;
    let position = (entries.offsets[entry] ?? 0) + (entries.headLengths[entry] ?? 0);
    let produced = 0;
    this.#inflater.reset();
    while (position < end) {
      const raw = this.#file.read(position, Math.min(end - position, pieceBytes));
      this.#inflater.push(raw, 0, raw.length, { bytes: target, start: produced, end: size + 1 });
      if (this.#inflater.consumed === 0) break;
      position += this.#inflater.consumed;
      produced += this.#inflater.produced;
    }
    if (produced !== size) throw new Error('a pack file in quarantine has changed');
  }
}
