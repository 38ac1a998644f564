import { createInflate } from 'node:zlib';

/**
 * The native object inside a zlib stream of Node. It is not documented: see docs/private-internals.md. Using one again for the
 * next stream is six times faster than `inflateSync` for each small object.
 */
export interface ZlibHandle {
  /** Inflates synchronously. `onerror` is called before it returns when the input is invalid. */
  writeSync(
    flush: number,
    input: Uint8Array,
    inputOffset: number,
    inputLength: number,
    output: Uint8Array,
    outputOffset: number,
    outputLength: number,
  ): void;
  /** Makes it ready for the next stream. */
  reset(): void;
  /** Frees its memory. */
  close(): void;
  onerror: (message: string, code: number, name: string) => void;
}

/** A handle for inflating, and its results. */
export interface InflateHandle {
  handle: ZlibHandle;
  /** After each `writeSync`: bytes of output left free, and bytes of input not consumed. */
  state: Uint32Array;
}

/** Opens a handle for inflating. @throws Error naming what this version of Node no longer has */
export function openInflateHandle(): InflateHandle {
  const { _handle: handle, _writeState: state } = createInflate() as unknown as {
    _handle?: Partial<ZlibHandle>;
    _writeState?: unknown;
  };
  for (const method of ['writeSync', 'reset', 'close'] as const)
    if (typeof handle?.[method] !== 'function') throw missing(`_handle.${method}()`);
  if (!(state instanceof Uint32Array) || state.length < 2) throw missing('_writeState');
  return { handle: handle as ZlibHandle, state };
}

function missing(what: string): Error {
  return new Error(
    `zlib of Node ${process.version} no longer has ${what}: adapt packs/format/zlib-handle.ts (docs/private-internals.md)`,
  );
}
