/** A longer delta is not cached: there are few of them, and inflating one again is a small part of the work on it. */
const longestCached = 64 * 1024;
const pageBytes = 256 * 1024;
/** Shared by all packs that this thread receives at a time. */
let freePages = 128;

/** Inflated deltas of a pack that is being received, as many as fit, one after the other in pages. */
export class DeltaCache {
  readonly #pages: Buffer[] = [];
  #end = 0;

  /** Reserves `size` bytes and one more. Returns their position, or -1 when there is no room. */
  reserve(size: number): number {
    if (size > longestCached) return -1;
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

  /** The page that holds a reserved position. */
  pageOf(position: number): Buffer {
    const page = this.#pages[Math.floor(position / pageBytes)];
    if (page === undefined) throw new RangeError('nothing is cached there');
    return page;
  }

  /** Index of a reserved position in its page. */
  startInPage(position: number): number {
    return position % pageBytes;
  }

  /** Frees the pages. Calling it again is harmless. */
  close(): void {
    freePages += this.#pages.splice(0).length;
    this.#end = 0;
  }
}
