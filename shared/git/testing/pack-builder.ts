import { hash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import { type ObjectType, objectTypes, offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { encodeBaseDistance, encodeEntryHeader, encodePackHeader } from '#shared/git/packs/format/pack-entry.ts';

/** Builds a pack entry by entry, valid or not. */
export class PackBuilder {
  readonly #parts: Buffer[] = [];
  #length = 12;
  #count = 0;

  /** Offset of the next entry. */
  get length(): number {
    return this.#length;
  }

  /** Adds an object. Returns its id. */
  add(type: ObjectType, content: string | Buffer): string {
    this.entry(encodeEntryHeader(objectTypes[type], Buffer.byteLength(content)), deflateSync(content));
    return objectId(type, content);
  }

  /** Adds the bytes of an entry. Returns its offset. */
  entry(...bytes: readonly Buffer[]): number {
    const start = this.#length;
    this.#parts.push(...bytes);
    this.#length += bytes.reduce((sum, { length }) => sum + length, 0);
    this.#count++;
    return start;
  }

  /** Adds a delta that names its base by its id. */
  referenceDelta(base: string, delta: Buffer): void {
    this.entry(encodeEntryHeader(referenceDelta, delta.length), Buffer.from(base, 'hex'), deflateSync(delta));
  }

  /** Adds a delta that names its base by its offset. Returns its own offset. */
  offsetDelta(baseOffset: number, delta: Buffer): number {
    return this.entry(
      encodeEntryHeader(offsetDelta, delta.length),
      encodeBaseDistance(this.#length - baseOffset),
      deflateSync(delta),
    );
  }

  /** The pack with its checksum. @param count of objects, as stated in the header */
  build(count = this.#count): Buffer {
    return seal(Buffer.concat([encodePackHeader(count), ...this.#parts]));
  }
}

/** Appends the right checksum to a pack. */
export function seal(pack: Buffer): Buffer {
  return Buffer.concat([pack, hash('sha1', pack, 'buffer')]);
}

/** The id of an object in hexadecimal. */
export function objectId(type: ObjectType, content: string | Buffer): string {
  return hash('sha1', Buffer.concat([Buffer.from(`${type} ${Buffer.byteLength(content)}\0`), Buffer.from(content)]), 'hex');
}

/** An entry of a tree. @param mode in octal digits */
export function treeEntry(mode: string, name: string | Buffer, oid: string): Buffer {
  return Buffer.concat([Buffer.from(`${mode} `), Buffer.from(name), Buffer.of(0), Buffer.from(oid, 'hex')]);
}

/** The content of a valid commit. @param more lines after the tree, such as parents */
export function commitOf(tree: string, ...more: readonly string[]): string {
  const who = 'A <a@example.com> 1700000000 +0000';
  return `${[`tree ${tree}`, ...more, `author ${who}`, `committer ${who}`].join('\n')}\n\nmessage\n`;
}

/** A delta: the sizes, and then its instructions. */
export function deltaOf(baseSize: number, resultSize: number, instructions: Buffer): Buffer {
  return Buffer.concat([varint(baseSize), varint(resultSize), instructions]);
}

/** The instruction of a delta that copies bytes from the base. */
export function copyInstruction(from: number, length: number): Buffer {
  return Buffer.of(
    0xff,
    from & 255,
    (from >> 8) & 255,
    (from >> 16) & 255,
    from >>> 24,
    length & 255,
    (length >> 8) & 255,
    (length >> 16) & 255,
  );
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 128; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}
