import type { RefChange } from '#shared/git/git-storage.ts';
import { RefNameSet } from '#shared/git/refs/ref-name-set.ts';
import type { ObjectId } from '#shared/ids.ts';

/**
 * The changes whose old value is as stated, and whose name finds room once the others before it are made. What is deleted
 * makes room first.
 *
 * @param current refs of those names, and all that could stand in their way
 */
export function applicableChanges(current: ReadonlyMap<string, ObjectId>, changes: readonly RefChange[]): readonly RefChange[] {
  const fresh = changes.filter(({ name, oldOid }) => current.get(name) === oldOid);
  const gone = new Set(fresh.flatMap(({ name, newOid }) => (newOid === undefined ? name : [])));
  const created = fresh.filter(({ oldOid, newOid }) => oldOid === undefined && newOid !== undefined).map(({ name }) => name);
  if (created.length === 0) return fresh;
  const names = new RefNameSet(
    [...current.keys()].filter((name) => !gone.has(name)),
    created,
  );
  return fresh.filter(({ name, oldOid, newOid }) => {
    if (newOid === undefined || oldOid !== undefined) return true;
    if (names.conflictWith(name) !== undefined) return false;
    names.add(name);
    return true;
  });
}
