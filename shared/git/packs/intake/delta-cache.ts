/** A delta larger than this is not held: few are, and inflating one again is a small part of the work on it. */
const longestHeld = 64 * 1024;
const pageBytes = 256 * 1024;
/** For all packs that a thread takes in at a time. */
let freePages = 128;

/** Inflated deltas, one after the other in pages: as many as fit of those that were found while a pack arrived. */
export class DeltaCache {
  readonly #pages: Buffer[] = [];
  #end = 0;

  /** Where `size` bytes and one more are kept from now on, or -1 when there is no room for them. */
  place(size: number): number {
    if (size > longestHeld) return -1;
    if (this.#end + size + 1 > this.#pages.length * pageBytes) {
      if (freePages === 0) return -1;
      freePages--;
      this.#end = this.#pages.length * pageBytes;
      this.#pages.push(Buffer.allocUnsafeSlow(pageBytes));
    }
    const position = this.#end;
    this.#end += size + 1;
    return position;
  }

  pageOf(position: number): Buffer {
    const page = this.#pages[Math.floor(position / pageBytes)];
    if (page === undefined) throw new RangeError('nothing is held there');
    return page;
  }

  startInPage(position: number): number {
    return position % pageBytes;
  }

  /** Gives the room back. Again is harmless. */
  close(): void {
    freePages += this.#pages.splice(0).length;
    this.#end = 0;
  }
}
