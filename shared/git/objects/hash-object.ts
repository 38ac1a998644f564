import { createHash, type Hash, hash } from 'node:crypto';
import { typeName } from '#shared/git/objects/object-type.ts';

/** Free bytes that `hashInPlace` needs before an object's content, in the same memory, for git's header. */
export const headroom = 32;

/**
 * Writes the raw id of an object to `target[at]`. Overwrites the `headroom` bytes before the content with git's header, so that
 * both are hashed by one call: that is several times faster than a streaming hash.
 */
export function hashInPlace(content: Buffer, type: number, target: Buffer, at: number): void {
  const header = `${typeName(type)} ${content.length}\0`;
  const object = Buffer.from(content.buffer, content.byteOffset - header.length, header.length + content.length);
  object.write(header, 0, 'latin1');
  // As a string: making a Buffer takes longer than hashing a small object.
  const id = hash('sha1', object, 'latin1');
  for (let i = 0; i < id.length; i++) target[at + i] = id.charCodeAt(i);
}

/** Starts the hash of an object whose content is added in pieces. */
export function startObjectHash(type: number, size: number): Hash {
  return createHash('sha1').update(`${typeName(type)} ${size}\0`, 'latin1');
}
