import { deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openInflateHandle } from '#shared/git/packs/format/zlib-handle.ts';

const text = Buffer.from('what is compressed, and comes out again');
const compressed = deflateSync(text);

/** Canaries: they fail when an upgrade of Node changes what zlib-handle.ts relies on. docs/private-internals.md says what to do then. */
const broken = (what: string): string =>
  `zlib of Node ${process.version} no longer ${what}: adapt packs/format/zlib-handle.ts (docs/private-internals.md)`;

/** Inflates in one call. The input has a byte after its end, which is not consumed. */
function inflate({ handle, state }: ReturnType<typeof openInflateHandle>, output: Buffer, input = compressed) {
  const padded = Buffer.concat([input, Buffer.of(0)]);
  handle.writeSync(0, padded, 0, padded.length, output, 0, output.length);
  return { free: state[0], unread: state[1] };
}

describe('the private handle of a zlib stream of Node', () => {
  it('exists', () => {
    expect(openInflateHandle).not.toThrow();
    openInflateHandle().handle.close();
  });

  it('inflates synchronously, and reports the bytes left free and not consumed in _writeState', () => {
    const inflater = openInflateHandle();
    const output = Buffer.alloc(text.length + 10);
    expect(inflate(inflater, output), broken('reports [free output, unread input] in _writeState')).toEqual({
      free: 10,
      unread: 1,
    });
    expect(output.subarray(0, text.length), broken('inflates with _handle.writeSync()')).toEqual(text);
    inflater.handle.close();
  });

  it('inflates the next stream after reset()', () => {
    const inflater = openInflateHandle();
    for (let i = 0; i < 3; i++) {
      const output = Buffer.alloc(text.length + 1);
      inflate(inflater, output);
      expect(output.subarray(0, text.length), broken('begins a new stream after _handle.reset()')).toEqual(text);
      inflater.handle.reset();
    }
    inflater.handle.close();
  });

  it('calls onerror for broken input, and is usable after reset()', () => {
    const inflater = openInflateHandle();
    const messages: string[] = [];
    inflater.handle.onerror = (message) => messages.push(message);
    inflate(inflater, Buffer.alloc(100), Buffer.from('this is not compressed'));
    expect(messages, broken('calls _handle.onerror(message) before writeSync() returns')).toEqual(['incorrect header check']);
    inflater.handle.reset();
    const output = Buffer.alloc(text.length + 1);
    inflate(inflater, output);
    expect(output.subarray(0, text.length), broken('recovers from an error by _handle.reset()')).toEqual(text);
    inflater.handle.close();
  });
});
