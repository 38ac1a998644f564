/** The stream ended in the middle of what was to be read. */
export class StreamEndedError extends Error {
  constructor() {
    super('the stream ended too early');
    this.name = 'StreamEndedError';
  }
}

/** Reads exact numbers of bytes from a stream that arrives in chunks of any size. */
export class ByteReader {
  readonly #input: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(input: AsyncIterable<Uint8Array>) {
    this.#input = input[Symbol.asyncIterator]();
  }

  /** Undefined when the stream ends before the first byte. @throws StreamEndedError when it ends after that */
  async read(length: number): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafe(length);
    for (let filled = 0; filled < length; ) {
      if (this.#chunk.length === 0) {
        const next = await this.#input.next();
        if (next.done === true) {
          if (filled === 0) return undefined;
          throw new StreamEndedError();
        }
        this.#chunk = next.value;
      }
      const part = this.#chunk.subarray(0, length - filled);
      bytes.set(part, filled);
      filled += part.length;
      this.#chunk = this.#chunk.subarray(part.length);
    }
    return bytes;
  }

  /** All bytes that were not read yet, in chunks as they arrive. */
  rest(): AsyncIterator<Uint8Array> {
    return {
      next: async () => {
        if (this.#chunk.length === 0) return this.#input.next();
        const value = this.#chunk;
        this.#chunk = new Uint8Array(0);
        return { done: false, value };
      },
    };
  }
}
