import { expect, it } from 'vitest';
import { readEvents } from '#shared/api-client/event-stream.ts';

async function read(text: string, pieceBytes: number) {
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, index) =>
    bytes.subarray(index * pieceBytes, (index + 1) * pieceBytes),
  );
  const body = ReadableStream.from(pieces);
  return Array.fromAsync(readEvents(body));
}

it.each([1, 2, 3, 1000])('reads events the same in pieces of %i bytes, whatever the line endings', async (pieceBytes) => {
  const text =
    ': hello\n\nid: 1\ndata: één\n\nid:2\r\nevent: end\r\ndata: a\r\ndata:  b\r\n\r\ndata: c\rretry: 5\r\rignored\n\ndata\n\n';
  expect(await read(text, pieceBytes)).toEqual([
    { event: 'message', id: '1', data: 'één' },
    { event: 'end', id: '2', data: 'a\n b' },
    { event: 'message', id: '2', data: 'c' },
    { event: 'message', id: '2', data: '' },
  ]);
});

it('leaves out an event that the stream broke off in', async () => {
  expect(await read('data: whole\n\nid: 2\ndata: half\n', 1000)).toEqual([{ event: 'message', id: '', data: 'whole' }]);
});
