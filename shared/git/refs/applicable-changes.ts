import type { RefChange } from '#shared/git/git-storage.ts';
import { RefNameSet } from '#shared/git/refs/ref-name-set.ts';
import type { ObjectId } from '#shared/ids.ts';

/**
 * The changes that can be made: the old value is as stated, and the name does not conflict with another ref once the changes
 * before it are made. Deletions are made first.
 *
 * @param current the current refs of those names, and all refs whose names could conflict with them
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
