import { objectTypes } from '#shared/git/objects/object-type.ts';
import { OidTable } from '#shared/git/objects/oid-table.ts';
import { parseCommit } from '#shared/git/objects/parse-commit.ts';
import type { ObjectDatabase } from '#shared/git/packs/reading/object-database.ts';
import type { YieldToEventLoop } from '#shared/git/yield-to-event-loop.ts';

/** Whether `ancestor` is reachable from `descendant`, or is the same commit. False when either is not a commit. */
export async function isAncestor(
  database: ObjectDatabase,
  ancestor: string,
  descendant: string,
  yieldToEventLoop: YieldToEventLoop,
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
    const pause = yieldToEventLoop();
    if (pause !== undefined) await pause;
  }
  return false;
}
