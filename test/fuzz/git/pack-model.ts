import { deflateSync } from 'node:zlib';
import { type ObjectType, objectTypes, offsetDelta, referenceDelta } from '#shared/git/objects/object-type.ts';
import { encodeBaseDistance, encodeEntryHeader, encodePackHeader } from '#shared/git/packs/format/pack-entry.ts';
import { commitOf, copyInstruction, deltaOf, objectId, seal, treeEntry } from '#shared/git/testing/pack-builder.ts';
import { pick, type Random } from '#test/support/random.ts';

/** An entry to be sent. Optional parts are derived from the others unless they are given, and then may be wrong. */
export interface ModelEntry {
  type: number;
  /** The uncompressed data: the content, or a delta. */
  data: Buffer;
  /** For an offset delta: the number of its base in the pack. */
  base?: number;
  /** For a reference delta: the id of its base. */
  baseId?: string;
  /** Type and size. */
  head?: Buffer;
  /** For an offset delta: the encoded distance to its base. */
  distance?: Buffer;
  /** The compressed data. */
  packed?: Buffer;
  /** Bytes that are sent after the entry and belong to nothing. */
  behind?: Buffer;
}

/** A pack to be sent. */
export interface PackModel {
  entries: ModelEntry[];
  version?: number;
  count?: number;
  trailer?: Buffer;
  /** Bytes that are sent after the pack. */
  behind?: Buffer;
  /** How many bytes of the pack are sent. */
  length?: number;
}

interface ModelObject {
  type: ObjectType;
  content: Buffer;
  id: string;
  /** Its number in the pack; undefined for an object of the repository. */
  entry: number | undefined;
}

/** A pack and its objects. */
export interface ValidPack extends PackModel {
  /** The objects of the pack and of the repository. */
  objects: ModelObject[];
}

/** Allocating the compressor's memory takes most of the time for a small pack. */
const quickly = { memLevel: 1, windowBits: 9 };

/** The bytes of a pack. */
export function encodeModel({ entries, version = 2, count = entries.length, trailer, behind, length }: PackModel): Buffer {
  const header = encodePackHeader(count);
  header.writeUInt32BE(version, 4);
  const parts = [header];
  const starts: number[] = [];
  let at = header.length;
  for (const entry of entries) {
    starts.push(at);
    const { type, data, base, baseId, head, distance, packed, behind: junk } = entry;
    const bytes = [
      head ?? encodeEntryHeader(type, data.length),
      ...(type === offsetDelta ? [distance ?? encodeBaseDistance(at - (starts[base ?? -1] ?? 0))] : []),
      ...(type === referenceDelta ? [Buffer.from(baseId ?? '', 'hex')] : []),
      packed ?? deflateSync(data, quickly),
      ...(junk === undefined ? [] : [junk]),
    ];
    parts.push(...bytes);
    for (const part of bytes) at += part.length;
  }
  const body = Buffer.concat(parts);
  const whole = trailer === undefined ? seal(body) : Buffer.concat([body, trailer]);
  return (behind === undefined ? whole : Buffer.concat([whole, behind])).subarray(0, length);
}

/** Adds an object that is not a delta. */
export function addObject(pack: ValidPack, type: ObjectType, content: string | Buffer): ModelObject {
  const data = Buffer.from(content);
  const object = { type, content: data, id: objectId(type, data), entry: pack.entries.length };
  pack.entries.push({ type: objectTypes[type], data });
  pack.objects.push(object);
  return object;
}

/** Adds a delta of `base` whose result is `result`. It names the base by its offset, if that is in the pack and `byId` is false. */
export function addDelta(pack: ValidPack, base: ModelObject, result: Buffer, instructions: Buffer, byId: boolean): ModelObject {
  const data = deltaOf(base.content.length, result.length, instructions);
  const object = { type: base.type, content: result, id: objectId(base.type, result), entry: pack.entries.length };
  pack.entries.push(
    base.entry === undefined || byId
      ? { type: referenceDelta, data, baseId: base.id }
      : { type: offsetDelta, data, base: base.entry },
  );
  pack.objects.push(object);
  return object;
}

/** Instructions that copy the base and append some bytes. */
export function appendTo(base: Buffer, more: Buffer): Buffer {
  return Buffer.concat([...(base.length > 0 ? [copyInstruction(0, base.length)] : []), Buffer.from([more.length]), more]);
}

/**
 * Makes a random valid pack of a few connected objects, with both kinds of deltas of blobs, trees and commits.
 * @param stored content of a blob in the repository
 */
export function makeValidPack(random: Random, stored: string): ValidPack {
  const known = { type: 'blob', content: Buffer.from(stored), id: objectId('blob', stored), entry: undefined } as const;
  const pack: ValidPack = { entries: [], objects: [known] };
  // Unique: an object that one pack lacks must not be in the repository because of another pack.
  const mark = `${random(65_536)}-${random(65_536)}`;
  const of = (type: ObjectType): ModelObject[] => pack.objects.filter((object) => object.type === type);
  const count = 1 + random(10);
  for (let i = 0; i < count; i++) {
    const kind = random(8);
    if (kind === 2 && i > 0) addTree(pack, random, of('blob'), of('tree'), i);
    else if (kind === 3 && of('tree').length > 0) {
      const parents = random(3) === 0 ? [] : of('commit').slice(-random(4));
      addObject(pack, 'commit', commitOf(pick(random, of('tree')).id, ...parents.map(({ id }) => `parent ${id}`)) + mark + i);
    } else if (kind === 4 && of('commit').length > 0) {
      const { id, type } = pick(random, pack.objects);
      addObject(pack, 'tag', `object ${id}\ntype ${type}\ntag v${i}\ntagger A <a@b> 1 +0000\n\n${mark}`);
    } else if (kind >= 5) {
      const base = pick(random, pack.objects);
      const more = base.type === 'tree' ? treeEntry('100644', `~${mark}~${i}`, known.id) : Buffer.from(`+${mark} ${i}`);
      const from = base.type === 'blob' ? random(base.content.length + 1) : 0;
      const kept = base.content.subarray(from);
      const copy = kept.length > 0 ? [copyInstruction(from, kept.length)] : [];
      const instructions = Buffer.concat([...copy, Buffer.from([more.length]), more]);
      // The names in a tree are unique and sorted.
      const again = base.type === 'tree' && base.content.includes('~');
      if (!again) addDelta(pack, base, Buffer.concat([kept, more]), instructions, random(2) === 0);
      else addObject(pack, 'blob', `${mark} ${i}`);
    } else {
      addObject(pack, 'blob', `line ${random(50)}\n`.repeat(random(40)) + mark + i);
    }
  }
  return pack;
}

function addTree(pack: ValidPack, random: Random, blobs: ModelObject[], trees: ModelObject[], i: number): void {
  const names = ['a', 'a.b', 'b', 'c', '.x', `name-${i}`];
  const files = names.filter(() => random(2) === 0).toSorted();
  const entries = files.map((name) => treeEntry(pick(random, ['100644', '100755', '120000']), name, pick(random, blobs).id));
  if (random(4) === 0) entries.push(treeEntry('160000', 'x', 'd'.repeat(40)));
  if (trees.length > 0 && random(2) === 0) entries.push(treeEntry('40000', 'z', pick(random, trees).id));
  const content = Buffer.concat(entries);
  if (!pack.objects.some(({ id }) => id === objectId('tree', content))) addObject(pack, 'tree', content);
}
