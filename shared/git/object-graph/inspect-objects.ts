import { type ObjectType, typeName } from '#shared/git/objects/object-type.ts';
import { parseTag } from '#shared/git/objects/parse-tag.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** What an object is. */
export interface Inspection {
  type: ObjectType;
  /** Id of the object that a tag points at, tags of tags peeled; for other objects, their own id. */
  peeled: string;
  peeledType: ObjectType;
}

/** In the order of the ids; undefined for objects that do not exist. */
export async function inspectObjects(
  database: ObjectDatabase,
  oids: readonly string[],
  yieldToEventLoop: YieldToEventLoop,
): Promise<(Inspection | undefined)[]> {
  const found: (Inspection | undefined)[] = [];
  for (const oid of oids) {
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
    found.push(inspect(database, oid));
  }
  return found;
}

function inspect(database: ObjectDatabase, oid: string): Inspection | undefined {
  const type = database.readType(Buffer.from(oid, 'hex'));
  if (type === undefined) return undefined;
  let peeled = oid;
  let peeledType = typeName(type);
  while (peeledType === 'tag') {
    const tag = database.read(Buffer.from(peeled, 'hex'));
    if (tag === undefined) throw new Error(`tag ${peeled} is missing`);
    const target = parseTag(tag.data);
    peeled = target.oid.toString('hex');
    peeledType = target.type;
  }
  return { type: typeName(type), peeled, peeledType };
}
