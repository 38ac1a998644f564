import { inflate, inflateEnd, inflateInit, inflateReset2, type ZStream } from 'pako/lib/zlib/inflate.js';
import Stream from 'pako/lib/zlib/zstream.js';
import { GitFault } from '#shared/git/git-fault.ts';
import type { Inflater, OutputRange } from '#shared/git/packs/format/inflater.ts';

/** Return codes of zlib. */
const ok = 0;
const streamEnd = 1;
/** Largest window of a zlib stream, as a power of two. */
const windowBits = 15;
/** Does not keep a window for a stream that ends within the same call. */
const finish = 4;
/** Neither input nor output could be used: more of one of them is needed. */
const noProgress = -5;

/** Inflates in JavaScript, by pako, on any runtime. */
export function openPortableInflater(): Inflater {
  return new PortableInflater();
}

class PortableInflater implements Inflater {
  consumed = 0;
  produced = 0;
  ended = false;
  readonly #stream: ZStream = new Stream();

  constructor() {
    inflateInit(this.#stream);
  }

  reset(): void {
    // pako keeps the window of the last stream and forgets its size. Another size makes it drop the window.
    inflateReset2(this.#stream, windowBits - 1);
    inflateReset2(this.#stream, windowBits);
    this.ended = false;
  }

  push(input: Uint8Array, start: number, end: number, output: OutputRange): void {
    const stream = this.#stream;
    stream.input = input;
    stream.next_in = start;
    stream.avail_in = end - start;
    stream.output = output.bytes;
    stream.next_out = output.start;
    stream.avail_out = output.end - output.start;
    const code = inflate(stream, finish);
    this.consumed = stream.next_in - start;
    this.produced = stream.next_out - output.start;
    this.ended = code === streamEnd;
    if (code === ok || code === streamEnd || code === noProgress) return;
    const problem = stream.msg === '' ? 'Missing dictionary' : stream.msg;
    this.reset();
    throw new GitFault(`compressed data is broken (${problem})`);
  }

  close(): void {
    inflateEnd(this.#stream);
  }
}
