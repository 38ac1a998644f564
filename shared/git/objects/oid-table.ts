/** Length of a raw object id. */
export const oidBytes = 20;
const wordsEach = oidBytes / 4;
const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/**
 * A set of raw object ids, numbered in the order in which they were added, in typed arrays: about 32 bytes an id. The hash has a
 * random key, because clients choose the ids that their trees and commits mention.
 */
export class OidTable {
  /** The raw ids: number n is at `n * oidBytes`. */
  oids: Buffer;
  size = 0;
  /** The same memory as `oids`, five words an id. */
  #words: Int32Array;
  #slots: Int32Array;
  readonly #key = crypto.getRandomValues(new Int32Array(5));

  constructor(expected = 64) {
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(Math.max(64, expected) * 1.5))).fill(-1);
    this.#words = new Int32Array(capacityOf(this.#slots.length) * wordsEach);
    this.oids = Buffer.from(this.#words.buffer);
  }

  /** The number of the id at `bytes[at]`, or -1. */
  find(bytes: Uint8Array, at = 0): number {
    return this.#slots[this.#probe(bytes, at)] ?? -1;
  }

  /** The number of the id at `bytes[at]`, which is `size - 1` afterwards if and only if it is new. */
  add(bytes: Uint8Array, at = 0): number {
    let slot = this.#probe(bytes, at);
    const found = this.#slots[slot] ?? -1;
    if (found >= 0) return found;
    if (this.size === capacityOf(this.#slots.length)) {
      this.#grow();
      slot = this.#probe(bytes, at);
    }
    const start = this.size * wordsEach;
    for (let i = 0; i < wordsEach; i++) this.#words[start + i] = wordAt(bytes, at + i * 4);
    this.#slots[slot] = this.size;
    return this.size++;
  }

  /** The raw id with this number; a view, not a copy. */
  oid(number: number): Buffer {
    return this.oids.subarray(number * oidBytes, (number + 1) * oidBytes);
  }

  /** The slot of the id at `bytes[at]`, or the free one where it belongs. */
  #probe(bytes: Uint8Array, at: number): number {
    const words = this.#words;
    const slots = this.#slots;
    const a = wordAt(bytes, at);
    const b = wordAt(bytes, at + 4);
    const c = wordAt(bytes, at + 8);
    const d = wordAt(bytes, at + 12);
    const e = wordAt(bytes, at + 16);
    const mask = slots.length - 1;
    let slot = this.#hash(a, b, c, d, e) & mask;
    for (;;) {
      const number = slots[slot] ?? -1;
      if (number < 0) return slot;
      const start = number * wordsEach;
      if (
        words[start] === a &&
        words[start + 1] === b &&
        words[start + 2] === c &&
        words[start + 3] === d &&
        words[start + 4] === e
      )
        return slot;
      slot = (slot + 1) & mask;
    }
  }

  #hash(a: number, b: number, c: number, d: number, e: number): number {
    const key = this.#key;
    let mixed = mix(a, key[0] ?? 0);
    mixed = mix(mixed ^ b, key[1] ?? 0);
    mixed = mix(mixed ^ c, key[2] ?? 0);
    mixed = mix(mixed ^ d, key[3] ?? 0);
    return mix(mixed ^ e, key[4] ?? 0);
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    const words = new Int32Array(capacityOf(this.#slots.length) * wordsEach);
    words.set(this.#words.subarray(0, this.size * wordsEach));
    this.#words = words;
    this.oids = Buffer.from(words.buffer);
    for (let number = 0; number < this.size; number++) this.#slots[this.#probe(this.oids, number * oidBytes)] = number;
  }
}

/** How many ids a table with so many slots can have before it grows: two thirds. */
function capacityOf(slots: number): number {
  return Math.floor(slots / 1.5);
}

function mix(word: number, key: number): number {
  const product = Math.imul(word, key | 1);
  return product ^ (product >>> 15);
}

/** In the byte order of the machine, so that ids are words and bytes at once. */
function wordAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  const second = bytes[at + 1] ?? 0;
  const third = bytes[at + 2] ?? 0;
  const fourth = bytes[at + 3] ?? 0;
  return littleEndian
    ? first | (second << 8) | (third << 16) | (fourth << 24)
    : fourth | (third << 8) | (second << 16) | (first << 24);
}
