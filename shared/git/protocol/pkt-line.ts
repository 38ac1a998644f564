import { GitFault } from '#shared/git/git-fault.ts';
import type { ByteReader } from '#shared/git/protocol/byte-reader.ts';

/** gitprotocol-common(5): four hexadecimal digits of length, which count themselves, then the content. */
export const flushPacket = Buffer.from('0000');
export const delimiterPacket = Buffer.from('0001');
export const longestContent = 65_516;

export function encodePacket(content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const digits = packetLength(bytes.length);
  const packet = Buffer.allocUnsafe(bytes.length + 4);
  packet.write(digits, 'latin1');
  packet.set(bytes, 4);
  return packet;
}

/** The digits before a content of so many bytes. @throws RangeError when no packet holds it */
export function packetLength(bytes: number): string {
  if (bytes > longestContent) throw new RangeError('the content is too long for a packet');
  return (bytes + 4).toString(16).padStart(4, '0');
}

export type Packet = Buffer | 'flush' | 'delimiter' | 'response-end' | 'end';

/** 'end' when the stream ends between two packets. @throws GitFault on anything that is not a packet */
export async function readPacket(reader: ByteReader): Promise<Packet> {
  const digits = await reader.read(4);
  if (digits === undefined) return 'end';
  const text = digits.toString('latin1');
  if (!/^[0-9a-fA-F]{4}$/.test(text)) throw new GitFault('this is not git: a packet begins without its length');
  const length = Number.parseInt(text, 16);
  if (length === 0) return 'flush';
  if (length === 1) return 'delimiter';
  if (length === 2) return 'response-end';
  if (length === 3) throw new GitFault('a packet has the impossible length 3');
  if (length === 4) return Buffer.alloc(0);
  const content = await reader.read(length - 4);
  if (content === undefined) throw new GitFault('the connection ended in the middle of a message');
  return content;
}

/** A line of text: the newline at its end is not part of it. */
export function packetText(packet: Buffer): string {
  const end = packet.at(-1) === 0x0a ? packet.length - 1 : packet.length;
  return packet.toString('utf8', 0, end);
}
