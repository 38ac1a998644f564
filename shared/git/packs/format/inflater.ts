import { GitFault } from '#shared/git/git-fault.ts';
import { openInflateHandle, type ZlibHandle } from '#shared/git/packs/format/zlib-handle.ts';

/** Where output goes: `bytes[start, end)`. */
export interface OutputRange {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Inflates zlib streams one after the other, each of them in pieces. */
export class Inflater {
  /** Bytes of input that the last `push` consumed. */
  consumed = 0;
  /** Bytes of output that the last `push` produced. */
  produced = 0;
  /** The stream has ended. That is not known before a byte after its end was pushed. */
  ended = false;
  readonly #handle: ZlibHandle;
  readonly #state: Uint32Array;
  #problem: string | undefined;

  constructor() {
    const { handle, state } = openInflateHandle();
    this.#handle = handle;
    this.#state = state;
    this.#handle.onerror = (message) => {
      this.#problem = message;
    };
  }

  /** Begins the next stream. */
  reset(): void {
    this.#handle.reset();
    this.#problem = undefined;
    this.ended = false;
  }

  /**
   * Inflates as much of `input[start, end)` as fits. There must be room for at least one byte of output, even at the end of the
   * stream.
   * @throws GitFault when the bytes are not a zlib stream
   */
  push(input: Uint8Array, start: number, end: number, output: OutputRange): void {
    const room = output.end - output.start;
    this.#handle.writeSync(0, input, start, end - start, output.bytes, output.start, room);
    if (this.#problem !== undefined) {
      const problem = this.#problem;
      this.reset();
      throw new GitFault(`compressed data is broken (${problem})`);
    }
    const left = this.#state[0] ?? 0;
    const unread = this.#state[1] ?? 0;
    this.produced = room - left;
    this.consumed = end - start - unread;
    // zlib stops with both input and room left only at the end of a stream.
    this.ended = left > 0 && unread > 0;
  }

  close(): void {
    this.#handle.close();
  }
}
