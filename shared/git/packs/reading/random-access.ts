import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { isMissing } from '#shared/files/if-missing.ts';
import { PackGone } from '#shared/git/packs/reading/pack-gone.ts';

/** Where the bytes of a pack or its index are: the path of a file, or shared memory. Both can be sent to a thread. */
export type ByteLocation = string | SharedArrayBuffer;

/** Bytes that can be read at any position. Reading is synchronous: it happens in worker threads, where there are any. */
export interface RandomAccess {
  readonly size: number;
  /**
   * The bytes from `position` on: `length` of them, or fewer where the bytes end. The next read may overwrite them.
   */
  read(position: number, length: number): Buffer;
  close(): void;
}

/** How much is read from the file at once: while reading goes straight on, and after a jump (enough for most objects). */
const windowBytes = 128 * 1024;
const jumpBytes = 8 * 1024;

/** @throws PackGone when there is no such file */
export function openBytes(location: ByteLocation): RandomAccess {
  return typeof location === 'string' ? new FileBytes(location) : new MemoryBytes(Buffer.from(location));
}

class MemoryBytes implements RandomAccess {
  readonly size: number;
  readonly #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.size = bytes.length;
  }

  read(position: number, length: number): Buffer {
    return this.#bytes.subarray(position, position + length);
  }

  close(): void {}
}

class FileBytes implements RandomAccess {
  readonly size: number;
  readonly #fd: number;
  #window = Buffer.alloc(0);
  #windowStart = 0;
  #windowEnd = 0;

  constructor(path: string) {
    this.#fd = openFile(path);
    this.size = fstatSync(this.#fd).size;
  }

  read(position: number, length: number): Buffer {
    const end = Math.min(position + length, this.size);
    if (position < this.#windowStart || end > this.#windowEnd) this.#fill(position, end);
    return this.#window.subarray(position - this.#windowStart, end - this.#windowStart);
  }

  #fill(position: number, end: number): void {
    const isSequential = position >= this.#windowStart && position <= this.#windowEnd;
    const wanted = Math.max(Math.min(isSequential ? windowBytes : jumpBytes, this.size), end - position);
    const usual = Math.min(windowBytes, this.size);
    if (this.#window.length < wanted) this.#window = Buffer.allocUnsafeSlow(Math.max(wanted, usual));
    // The large buffer of a read that needed more than a window is dropped by the next smaller read.
    else if (this.#window.length > 4 * windowBytes && wanted <= usual) this.#window = Buffer.allocUnsafeSlow(usual);
    this.#windowStart = position;
    this.#windowEnd = position;
    while (this.#windowEnd < Math.min(position + wanted, this.size)) {
      const got = readSync(
        this.#fd,
        this.#window,
        this.#windowEnd - position,
        position + wanted - this.#windowEnd,
        this.#windowEnd,
      );
      if (got === 0) throw new Error('a pack file is shorter than it was');
      this.#windowEnd += got;
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (isMissing(error)) throw new PackGone(`${path} was deleted`);
    throw error;
  }
}
