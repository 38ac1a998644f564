import { longestContent } from '#shared/git/protocol/pkt-line.ts';

const pieceLength = 32 * 1024;

/** Writes many short packets in few pieces, each only when the one before is on its way. */
export async function writePackets(write: (bytes: Uint8Array) => Promise<void>, contents: Iterable<string>): Promise<void> {
  let piece = '';
  for (const content of contents) {
    const bytes = Buffer.byteLength(content);
    if (bytes > longestContent) throw new RangeError('the content is too long for a packet');
    piece += (bytes + 4).toString(16).padStart(4, '0') + content;
    if (piece.length < pieceLength) continue;
    await write(Buffer.from(piece));
    piece = '';
  }
  if (piece !== '') await write(Buffer.from(piece));
}
