import { encodePacket, longestContent } from '#shared/git/protocol/pkt-line.ts';

/** Side band of the pack, or of a report (gitprotocol-pack(5), "Packfile Data"). */
export const dataBand = 1;
/** Side band of lines that git prints after `remote: `. */
export const progressBand = 2;

/** The first byte of each packet is its band. */
const pieceBytes = longestContent - 1;

/** Packets of a band that hold these bytes. No bytes give one packet without data, which keeps a connection alive. */
export function encodeBand(band: number, bytes: Uint8Array): Buffer {
  const packets: Buffer[] = [];
  for (let at = 0; at === 0 || at < bytes.length; at += pieceBytes) {
    const piece = bytes.subarray(at, at + pieceBytes);
    const content = Buffer.allocUnsafe(piece.length + 1);
    content[0] = band;
    content.set(piece, 1);
    packets.push(encodePacket(content));
  }
  return packets.length === 1 && packets[0] !== undefined ? packets[0] : Buffer.concat(packets);
}
