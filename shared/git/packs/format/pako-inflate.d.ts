/** The part of zlib's own interface that pako offers under this path, and which its main module does not export. */
declare module 'pako/lib/zlib/inflate.js' {
  /** zlib's `z_stream`, with arrays and positions in place of pointers. */
  export interface ZStream {
    input: Uint8Array | null;
    next_in: number;
    avail_in: number;
    output: Uint8Array | null;
    next_out: number;
    avail_out: number;
    /** Why `inflate` failed. */
    msg: string;
  }
  /** Each returns a code of zlib: 0 for success. */
  export function inflateInit(stream: ZStream): number;
  export function inflateReset2(stream: ZStream, windowBits: number): number;
  export function inflateEnd(stream: ZStream): number;
  export function inflate(stream: ZStream, flush: number): number;
}

declare module 'pako/lib/zlib/zstream.js' {
  import type { ZStream } from 'pako/lib/zlib/inflate.js';

  const constructor: new () => ZStream;
  export default constructor;
}
