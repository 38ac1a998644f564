import { GitFault } from '#shared/git/git-fault.ts';
import type { Inflater, OutputRange } from '#shared/git/packs/format/inflater.ts';
import { openInflateHandle, type ZlibHandle } from '#shared/git/packs/format/zlib-handle.ts';

/** Inflates by Node's zlib. */
export function openNativeInflater(): Inflater {
  return new NativeInflater();
}

class NativeInflater implements Inflater {
  consumed = 0;
  produced = 0;
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

  reset(): void {
    this.#handle.reset();
    this.#problem = undefined;
    this.ended = false;
  }

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
