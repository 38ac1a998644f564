import { type ByteReader, StreamEndedError } from '#shared/byte-reader.ts';
import { GitFault } from '#shared/git/git-fault.ts';

/**
 * The framing of git's protocol (gitprotocol-common(5)). A packet is four hexadecimal digits, which give its length including
 * themselves, and then the content.
 */

/** Ends a list of packets. */
export const flushPacket = Buffer.from('0000');
/** Separates sections of a list of packets, in version 2 of the protocol. */
export const delimiterPacket = Buffer.from('0001');
/** Bytes that a packet can hold. */
export const longestContent = 65_516;

/** A packet with this content. @throws RangeError when it is longer than `longestContent` */
export function encodePacket(content: string | Uint8Array): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content) : content;
  const digits = packetLength(bytes.length);
  const packet = Buffer.allocUnsafe(bytes.length + 4);
  packet.write(digits, 'latin1');
  packet.set(bytes, 4);
  return packet;
}

/** The four digits before a content of so many bytes. @throws RangeError when it is longer than `longestContent` */
export function packetLength(bytes: number): string {
  if (bytes > longestContent) throw new RangeError('the content is too long for a packet');
  return (bytes + 4).toString(16).padStart(4, '0');
}

/** The content of a packet, or the kind of a packet without content; 'end' is the end of the stream. */
export type Packet = Buffer | 'flush' | 'delimiter' | 'response-end' | 'end';

/** Reads the next packet. 'end' when the stream ends before it. @throws GitFault when the bytes are not a packet */
export async function readPacket(reader: ByteReader): Promise<Packet> {
  const digits = await readBytes(reader, 4);
  if (digits === undefined) return 'end';
  const text = digits.toString('latin1');
  if (!/^[0-9a-fA-F]{4}$/.test(text)) throw new GitFault('this is not the git protocol: a packet has no length');
  const length = Number.parseInt(text, 16);
  if (length === 0) return 'flush';
  if (length === 1) return 'delimiter';
  if (length === 2) return 'response-end';
  if (length === 3) throw new GitFault('a packet has the invalid length 3');
  if (length === 4) return Buffer.alloc(0);
  const content = await readBytes(reader, length - 4);
  if (content === undefined) throw endedEarly();
  return content;
}

async function readBytes(reader: ByteReader, length: number): Promise<Buffer | undefined> {
  try {
    return await reader.read(length);
  } catch (error) {
    throw error instanceof StreamEndedError ? endedEarly() : error;
  }
}

/** A stream ended where more had to come. */
export function endedEarly(): GitFault {
  return new GitFault('the connection ended in the middle of a message');
}

/** The content as a line of text, without the newline at its end. */
export function packetText(packet: Buffer): string {
  const end = packet.at(-1) === 0x0a ? packet.length - 1 : packet.length;
  return packet.toString('utf8', 0, end);
}
