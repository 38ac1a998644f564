import { createHash, type Hash, hash } from 'node:crypto';
import { typeName } from '#shared/git/objects/object-type.ts';

/** Bytes to leave free before an object's content, for `hashInPlace` to put git's header into. */
export const headroom = 32;

/**
 * The raw id of the object whose content is `buffer[start, end)`. The `headroom` bytes before `start` are overwritten:
 * git hashes header and content in one go, and one call to the hash is several times cheaper than a streaming one.
 */
export function hashInPlace(buffer: Buffer, start: number, end: number, type: number): Buffer {
  const header = `${typeName(type)} ${end - start}\0`;
  const from = start - header.length;
  buffer.write(header, from, 'latin1');
  return hash('sha1', buffer.subarray(from, end), 'buffer');
}

/** For content that is not held in one piece. */
export function startObjectHash(type: number, size: number): Hash {
  return createHash('sha1').update(`${typeName(type)} ${size}\0`, 'latin1');
}
