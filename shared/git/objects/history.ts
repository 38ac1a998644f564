import { parseCommit } from '#shared/git/objects/commit.ts';
import { type ObjectType, objectTypes, typeName } from '#shared/git/objects/object-type.ts';
import { parseTag } from '#shared/git/objects/tag.ts';
import type { ObjectDatabase } from '#shared/git/packs/object-database.ts';
import { OidTable } from '#shared/git/packs/oid-table.ts';

export interface Inspection {
  type: ObjectType;
  /** What is left when all tags around it are taken off; itself when it is no tag. */
  peeled: string;
  peeledType: ObjectType;
}

type Breathe = () => Promise<void> | undefined;

/** In the order asked; undefined for what is not there. */
export async function inspectObjects(
  database: ObjectDatabase,
  oids: readonly string[],
  breathe: Breathe,
): Promise<(Inspection | undefined)[]> {
  const found: (Inspection | undefined)[] = [];
  for (const oid of oids) {
    const pause = breathe();
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

/** Whether `descendant` is `ancestor` or comes after it. False when either is not a commit. */
export async function isAncestor(
  database: ObjectDatabase,
  ancestor: string,
  descendant: string,
  breathe: Breathe,
): Promise<boolean> {
  const wanted = Buffer.from(ancestor, 'hex');
  if (database.readType(wanted) !== objectTypes.commit) return false;
  const seen = new OidTable();
  seen.add(Buffer.from(descendant, 'hex'));
  for (let number = 0; number < seen.size; number++) {
    const oid = seen.oid(number);
    if (oid.equals(wanted)) return true;
    const commit = database.read(oid);
    if (commit?.type !== objectTypes.commit) return false;
    for (const parent of parseCommit(commit.data).parents) seen.add(parent);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return false;
}
