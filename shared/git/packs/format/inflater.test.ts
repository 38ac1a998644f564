import { deflateRawSync, deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { GitFault } from '#shared/git/git-fault.ts';
import type { OpenInflater } from '#shared/git/packs/format/inflater.ts';
import { openNativeInflater } from '#shared/git/packs/format/native-inflater.ts';
import { openPortableInflater } from '#shared/git/packs/format/portable-inflater.ts';
import { createRandom } from '#test/support/random.ts';

const drivers: [string, OpenInflater][] = [
  ['native', openNativeInflater],
  ['portable', openPortableInflater],
];

describe.each(drivers)('the %s inflater', (_name, open) => {
  const random = createRandom(1);
  const randomBytes = Buffer.from(Array.from({ length: 70_000 }, () => random(256)));
  const texts = ['', 'a', 'some text that is repeated '.repeat(9000), randomBytes].map((text) => Buffer.from(text));

  /** Inflates one stream after the other from one input, in pieces of so many bytes. */
  function inflateAll(input: Buffer, pieceBytes: number, roomBytes: number): Buffer[] {
    const inflater = open();
    const found: Buffer[] = [];
    let parts: Buffer[] = [];
    for (let at = 0; at < input.length; ) {
      const output = Buffer.alloc(roomBytes);
      const end = Math.min(at + pieceBytes, input.length);
      inflater.push(input, at, end, { bytes: output, start: 0, end: roomBytes });
      at += inflater.consumed;
      parts.push(output.subarray(0, inflater.produced));
      if (!inflater.ended && (inflater.consumed > 0 || inflater.produced > 0)) continue;
      found.push(Buffer.concat(parts));
      parts = [];
      inflater.reset();
    }
    inflater.close();
    return found;
  }

  it.each([
    [1, 1000],
    [7, 13],
    [100_000, 400_000],
  ])('inflates streams that follow one another, in pieces of %i bytes into %i bytes of room', (pieceBytes, roomBytes) => {
    const input = Buffer.concat([...texts.map((text) => deflateSync(text)), Buffer.of(0)]);
    // The last byte begins a stream that does not end.
    const streams = inflateAll(input, pieceBytes, roomBytes);
    expect(streams.map(({ length }) => length)).toEqual(texts.map(({ length }) => length));
    for (const [i, stream] of streams.entries()) expect(stream.equals(texts[i] ?? Buffer.alloc(0))).toBe(true);
  });

  it('writes into its range only', () => {
    const inflater = open();
    const bytes = Buffer.alloc(40, 0xee);
    const input = Buffer.concat([deflateSync(Buffer.alloc(1000, 1)), Buffer.of(0)]);
    inflater.push(input, 0, input.length, { bytes, start: 10, end: 30 });
    expect([inflater.produced, inflater.ended]).toEqual([20, false]);
    expect(bytes).toEqual(Buffer.concat([Buffer.alloc(10, 0xee), Buffer.alloc(20, 1), Buffer.alloc(10, 0xee)]));
    inflater.close();
  });

  it.each([
    ['text', Buffer.from('this is not compressed')],
    ['data without a header', deflateRawSync(Buffer.alloc(100))],
    ['a wrong checksum', Buffer.concat([deflateSync(Buffer.from('abc')).subarray(0, -4), Buffer.alloc(5)])],
    ['a dictionary that is not there', deflateSync(Buffer.from('abcabc'), { dictionary: Buffer.from('abc') })],
  ])('refuses %s with a GitFault, and inflates the next stream', (_what, broken) => {
    const inflater = open();
    const output = { bytes: Buffer.alloc(200), start: 0, end: 200 };
    expect(() => inflater.push(broken, 0, broken.length, output)).toThrow(GitFault);
    inflater.reset();
    const next = Buffer.concat([deflateSync(Buffer.from('next')), Buffer.of(0)]);
    inflater.push(next, 0, next.length, output);
    expect(output.bytes.toString('latin1', 0, inflater.produced)).toBe('next');
    inflater.close();
  });
});
