import { GitFault } from '#shared/git/git-fault.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';

/** The head of an entry in a pack, before its compressed data (gitformat-pack(5)). */
export interface EntryHeader {
  /** 1 to 4 (`objectTypes`), or 6 or 7 for a delta. */
  type: number;
  /** Inflated size of the data; for a delta, of its instructions. */
  size: number;
  /** Bytes of the head. */
  length: number;
  /** For an offset delta: how many bytes before this entry its base begins. */
  baseDistance: number;
  /** For a reference delta: index of the base's id in the bytes that were read. */
  baseOidAt: number;
}

/** Longest head: 8 bytes of type and size, 20 of the base's id. */
export const longestEntryHeader = 8 + oidBytes;

/**
 * Reads the head at `bytes[at]` into `header`. False when the head goes beyond `end`.
 * @throws GitFault when it is invalid
 */
export function readEntryHeader(bytes: Uint8Array, at: number, end: number, header: EntryHeader): boolean {
  let next = at;
  let byte = bytes[next++] ?? 0;
  if (next > end) return false;
  header.type = (byte >> 4) & 7;
  header.size = byte & 15;
  header.baseDistance = 0;
  header.baseOidAt = 0;
  if (header.type === 0 || header.type === 5) throw new GitFault(`an object has the unknown type ${header.type}`);
  for (let scale = 16; byte >= 128; scale *= 128) {
    if (scale >= 2 ** 49) throw new GitFault('an object has an impossible size');
    if (next >= end) return false;
    byte = bytes[next++] ?? 0;
    header.size += (byte & 127) * scale;
  }
  if (header.type === offsetDelta) {
    let distance = -1;
    do {
      if (distance >= 2 ** 45) throw new GitFault('a delta has an impossible distance to its base');
      if (next >= end) return false;
      byte = bytes[next++] ?? 0;
      distance = (distance + 1) * 128 + (byte & 127);
    } while (byte >= 128);
    header.baseDistance = distance;
  } else if (header.type === referenceDelta) {
    if (next + oidBytes > end) return false;
    header.baseOidAt = next;
    next += oidBytes;
  }
  header.length = next - at;
  return true;
}

/** To be filled by `readEntryHeader`. */
export function emptyEntryHeader(): EntryHeader {
  return { type: 0, size: 0, length: 0, baseDistance: 0, baseOidAt: 0 };
}

/** Type and size of an entry. For a delta, the distance or id of its base comes after it. */
export function encodeEntryHeader(type: number, size: number): Buffer {
  const bytes: number[] = [];
  let byte = (type << 4) | (size & 15);
  let rest = Math.floor(size / 16);
  while (rest > 0) {
    bytes.push(byte | 128);
    byte = rest & 127;
    rest = Math.floor(rest / 128);
  }
  bytes.push(byte);
  return Buffer.from(bytes);
}

/** The distance to the base of an offset delta. */
export function encodeBaseDistance(distance: number): Buffer {
  const bytes = [distance & 127];
  let rest = Math.floor(distance / 128);
  while (rest > 0) {
    rest -= 1;
    bytes.unshift((rest & 127) | 128);
    rest = Math.floor(rest / 128);
  }
  return Buffer.from(bytes);
}

/** Bytes before the first entry of a pack. */
export const packHeaderBytes = 12;
/** Bytes of the checksum after the last entry. */
export const packTrailerBytes = oidBytes;

/** The first bytes of a pack, version 2. */
export function encodePackHeader(objectCount: number): Buffer {
  const header = Buffer.alloc(packHeaderBytes);
  header.write('PACK', 'latin1');
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(objectCount, 8);
  return header;
}
