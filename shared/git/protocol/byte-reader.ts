import { GitFault } from '#shared/git/git-fault.ts';

/** Takes exact numbers of bytes from a stream that comes in pieces of any size. */
export class ByteReader {
  readonly #input: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(input: AsyncIterable<Uint8Array>) {
    this.#input = input[Symbol.asyncIterator]();
  }

  /** Undefined when the stream ends before the first byte. @throws GitFault when it ends after that */
  async read(length: number): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafe(length);
    for (let have = 0; have < length; ) {
      if (this.#chunk.length === 0) {
        const next = await this.#input.next();
        if (next.done === true) {
          if (have === 0) return undefined;
          throw new GitFault('the connection ended in the middle of a message');
        }
        this.#chunk = next.value;
      }
      const part = this.#chunk.subarray(0, length - have);
      bytes.set(part, have);
      have += part.length;
      this.#chunk = this.#chunk.subarray(part.length);
    }
    return bytes;
  }

  /** Everything that has not been taken yet. */
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
