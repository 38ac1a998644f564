import type { ObjectType } from '#shared/git/objects/object-type.ts';

/** What an annotated tag points at. @param data of a tag that passed `checkTag` */
export function parseTag(data: Buffer): { oid: Buffer; type: ObjectType } {
  const end = data.indexOf('\n', 48, 'latin1');
  return { oid: Buffer.from(data.toString('latin1', 7, 47), 'hex'), type: data.toString('latin1', 53, end) as ObjectType };
}
