/** Where output goes: `bytes[start, end)`. */
export interface OutputRange {
  bytes: Uint8Array;
  start: number;
  end: number;
}

/** Inflates zlib streams one after the other, each of them in pieces. */
export interface Inflater {
  /** Bytes of input that the last `push` consumed. */
  readonly consumed: number;
  /** Bytes of output that the last `push` produced. */
  readonly produced: number;
  /** The stream has ended. That may not be known before a byte after its end was pushed. */
  readonly ended: boolean;
  /** Begins the next stream. */
  reset(): void;
  /**
   * Inflates as much of `input[start, end)` as fits. There must be room for at least one byte of output, even at the end of the
   * stream.
   * @throws GitFault when the bytes are not a zlib stream
   */
  push(input: Uint8Array, start: number, end: number, output: OutputRange): void;
  /** Frees its memory. */
  close(): void;
}

/** Opens an inflater. The caller closes it. */
export type OpenInflater = () => Inflater;
