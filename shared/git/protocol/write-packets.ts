import { flushPacket, packetLength } from '#shared/git/protocol/pkt-line.ts';

const pieceLength = 32 * 1024;

/** Writes packets and a flush packet after them, in few chunks. Each chunk waits until the one before was written. */
export async function writePackets(write: (bytes: Uint8Array) => Promise<void>, contents: Iterable<string>): Promise<void> {
  let piece = '';
  for (const content of contents) {
    piece += packetLength(Buffer.byteLength(content)) + content;
    if (piece.length < pieceLength) continue;
    await write(Buffer.from(piece));
    piece = '';
  }
  await write(Buffer.from(piece + flushPacket.toString()));
}
