/** Length of a raw object id. */
export const oidBytes = 20;

/**
 * A set of raw object ids, numbered in the order in which they came, in flat memory: about 32 bytes an id.
 * The hash is keyed at random, because whoever pushes chooses the ids that trees and commits mention.
 */
export class OidTable {
  /** Raw ids one after the other: number n is at `n * oidBytes`. */
  oids: Buffer;
  size = 0;
  #slots: Int32Array;
  readonly #key = crypto.getRandomValues(new Int32Array(5));

  constructor(expected = 64) {
    this.#slots = new Int32Array(2 ** Math.ceil(Math.log2(Math.max(64, expected) * 1.5))).fill(-1);
    this.oids = Buffer.allocUnsafe(fitting(this.#slots.length) * oidBytes);
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
    if (this.size === fitting(this.#slots.length)) {
      this.#grow();
      slot = this.#probe(bytes, at);
    }
    const start = this.size * oidBytes;
    for (let i = 0; i < oidBytes; i++) this.oids[start + i] = bytes[at + i] ?? 0;
    this.#slots[slot] = this.size;
    return this.size++;
  }

  oid(number: number): Buffer {
    return this.oids.subarray(number * oidBytes, (number + 1) * oidBytes);
  }

  #probe(bytes: Uint8Array, at: number): number {
    const mask = this.#slots.length - 1;
    let slot = this.#hash(bytes, at) & mask;
    for (;;) {
      const number = this.#slots[slot] ?? -1;
      if (number < 0 || equal(this.oids, number * oidBytes, bytes, at)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #hash(bytes: Uint8Array, at: number): number {
    let mixed = 0;
    for (let word = 0; word < 5; word++) {
      const i = at + word * 4;
      const value = (bytes[i] ?? 0) | ((bytes[i + 1] ?? 0) << 8) | ((bytes[i + 2] ?? 0) << 16) | ((bytes[i + 3] ?? 0) << 24);
      mixed = Math.imul(mixed ^ value, (this.#key[word] ?? 0) | 1);
      mixed ^= mixed >>> 15;
    }
    return mixed;
  }

  #grow(): void {
    this.#slots = new Int32Array(this.#slots.length * 2).fill(-1);
    const oids = Buffer.allocUnsafe(fitting(this.#slots.length) * oidBytes);
    this.oids.copy(oids, 0, 0, this.size * oidBytes);
    this.oids = oids;
    for (let number = 0; number < this.size; number++) this.#slots[this.#probe(oids, number * oidBytes)] = number;
  }
}

/** How many ids a table of so many slots may hold before it grows: two thirds. */
function fitting(slots: number): number {
  return Math.floor(slots / 1.5);
}

function equal(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number): boolean {
  for (let i = 0; i < oidBytes; i++) if (a[aAt + i] !== b[bAt + i]) return false;
  return true;
}
