import { type ObjectType, typeName } from '#shared/git/objects/object-type.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';

/** An object as it is stored, without its header. `content` is undefined if it is larger than was allowed. */
export interface StoredObject {
  type: ObjectType;
  bytes: number;
  content: Uint8Array | undefined;
}

/** @returns undefined for an object that does not exist */
export function readObject(database: ObjectDatabase, oid: string, longestBytes: number): StoredObject | undefined {
  const location = database.find(Buffer.from(oid, 'hex'));
  if (location === undefined) return undefined;
  const bytes = database.readSize(location);
  const { type, data } =
    bytes > longestBytes ? { type: database.readType(Buffer.from(oid, 'hex')), data: undefined } : database.readAt(location);
  return type === undefined ? undefined : { type: typeName(type), bytes, content: data };
}
