import { createInflate } from 'node:zlib';
import { GitFault } from '#shared/git/git-fault.ts';

/** What Node's own zlib streams are made of. Reusing one is six times cheaper than `inflateSync` for each small object. */
interface ZlibHandle {
  writeSync(
    flush: number,
    input: Uint8Array,
    inputOffset: number,
    inputLength: number,
    output: Uint8Array,
    outputOffset: number,
    outputLength: number,
  ): void;
  reset(): void;
  close(): void;
  onerror: (message: string, code: number, name: string) => void;
}

interface ZlibInternals {
  readonly _handle: ZlibHandle;
  /** After each write: bytes of output left free, bytes of input not taken. */
  readonly _writeState: Uint32Array;
}

/** zlib streams, one after the other, each fed in pieces. */
export class Inflater {
  /** Of the last `push`. */
  consumed = 0;
  produced = 0;
  /** The stream has ended. Not known before a byte after its end has been offered. */
  ended = false;
  readonly #handle: ZlibHandle;
  readonly #state: Uint32Array;
  #problem: string | undefined;

  constructor() {
    const internals = createInflate() as unknown as ZlibInternals;
    this.#handle = internals._handle;
    this.#state = internals._writeState;
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
   * Inflates as much as fits. There must be room for at least one byte of output, even at the end of the stream.
   * @throws GitFault when the bytes are not a zlib stream
   */
  push(
    input: Uint8Array,
    inputStart: number,
    inputEnd: number,
    output: Uint8Array,
    outputStart: number,
    outputEnd: number,
  ): void {
    this.#handle.writeSync(0, input, inputStart, inputEnd - inputStart, output, outputStart, outputEnd - outputStart);
    if (this.#problem !== undefined) {
      const problem = this.#problem;
      this.reset();
      throw new GitFault(`compressed data is broken (${problem})`);
    }
    const room = this.#state[0] ?? 0;
    const rest = this.#state[1] ?? 0;
    this.produced = outputEnd - outputStart - room;
    this.consumed = inputEnd - inputStart - rest;
    // zlib stops with both input and room left only at the end of a stream.
    this.ended = room > 0 && rest > 0;
  }

  close(): void {
    this.#handle.close();
  }
}
