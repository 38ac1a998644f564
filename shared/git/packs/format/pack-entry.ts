import { GitFault } from '#shared/git/git-fault.ts';
import { offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { oidBytes } from '#shared/git/objects/oid-table.ts';

/** The head of an object in a pack, before its compressed data. */
export interface EntryHeader {
  /** 1 to 4, 6 or 7. */
  type: number;
  /** Inflated bytes of the data; of a delta, not of what it makes. */
  size: number;
  /** Bytes of this head. */
  length: number;
  /** Of an offset delta: how far back the base begins. */
  baseDistance: number;
  /** Of a reference delta: where in the bytes read the base's id is. */
  baseOidAt: number;
}

/** No head is longer: 8 bytes of size, 20 of a base's id. */
export const longestEntryHeader = 8 + oidBytes;

/**
 * Reads the head at `bytes[at]` into `header`. False when the bytes end before it does.
 * @throws GitFault when it is not one
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
    if (scale >= 2 ** 49) throw new GitFault('an object states an impossible size');
    if (next >= end) return false;
    byte = bytes[next++] ?? 0;
    header.size += (byte & 127) * scale;
  }
  if (header.type === offsetDelta) {
    let distance = -1;
    do {
      if (distance >= 2 ** 45) throw new GitFault('a delta states an impossible distance');
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

export function emptyEntryHeader(): EntryHeader {
  return { type: 0, size: 0, length: 0, baseDistance: 0, baseOidAt: 0 };
}

/** The head of an entry; what follows it for a delta is not part of this. */
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

/** How an offset delta says where its base begins. */
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

export const packHeaderBytes = 12;
export const packTrailerBytes = oidBytes;

export function encodePackHeader(objectCount: number): Buffer {
  const header = Buffer.alloc(packHeaderBytes);
  header.write('PACK', 'latin1');
  header.writeUInt32BE(2, 4);
  header.writeUInt32BE(objectCount, 8);
  return header;
}
