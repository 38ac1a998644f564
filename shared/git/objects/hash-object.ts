import { createHash, type Hash, hash } from 'node:crypto';
import { typeName } from '#shared/git/objects/object-type.ts';

/** Bytes to leave free before an object's content, for `hashInPlace` to put git's header into. */
export const headroom = 32;

/**
 * Puts the raw id of the object whose content is `buffer[start, end)` at `target[at]`. The `headroom` bytes before
 * `start` are overwritten: git hashes header and content in one go, and one call to the hash is several times cheaper
 * than a streaming one.
 */
export function hashInPlace(buffer: Buffer, start: number, end: number, type: number, target: Buffer, at: number): void {
  const header = `${typeName(type)} ${end - start}\0`;
  const from = start - header.length;
  buffer.write(header, from, 'latin1');
  // As a string, because a Buffer of its own costs more than the hash of a small object.
  const id = hash('sha1', buffer.subarray(from, end), 'latin1');
  for (let i = 0; i < id.length; i++) target[at + i] = id.charCodeAt(i);
}

/** For content that is not held in one piece. */
export function startObjectHash(type: number, size: number): Hash {
  return createHash('sha1').update(`${typeName(type)} ${size}\0`, 'latin1');
}
