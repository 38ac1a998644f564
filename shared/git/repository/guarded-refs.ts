import type { Db } from '#shared/database/db.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import { locatePacks } from '#shared/git/repository/locate-packs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/**
 * The same refs, with a guard: before a ref moves to an object that only unreachable packs hold, those packs become part of the
 * repository again, so that garbage collection does not remove them.
 */
export function createGuardedRefs(refs: RefDriver, access: Omit<RepositoryAccess, 'refs'>): RefDriver {
  // Nothing becomes unreachable while a transaction holds the repository's lock: a push of many refs checks once.
  const checked = new WeakMap<Db, RepositoryId>();
  const guard = async <T>(
    db: Db,
    repositoryId: RepositoryId,
    changes: readonly RefChange[],
    swap: (db: Db) => Promise<T>,
  ): Promise<T> => {
    const tips = [...new Set(changes.flatMap(({ newOid }) => newOid ?? []))];
    if (tips.length === 0 || checked.get(db) === repositoryId) return await swap(db);
    return await access.catalog.withLock(db, repositoryId, async (locked) => {
      await reinstateTips(access, locked, repositoryId, tips);
      if (db.isTransaction) checked.set(db, repositoryId);
      return await swap(locked);
    });
  };
  return {
    ...refs,
    compareAndSwap: (db, repositoryId, changes) =>
      guard(db, repositoryId, changes, (locked) => refs.compareAndSwap(locked, repositoryId, changes)),
    swapEach: (db, repositoryId, changes) =>
      guard(db, repositoryId, changes, (locked) => refs.swapEach(locked, repositoryId, changes)),
  };
}

async function reinstateTips(
  access: Omit<RepositoryAccess, 'refs'>,
  db: Db,
  repositoryId: RepositoryId,
  tips: readonly ObjectId[],
): Promise<void> {
  const listed = await access.catalog.listPacks(repositoryId, db);
  const reachable = listed.filter(({ unreachableSince }) => unreachableSince === undefined);
  if (reachable.length === listed.length) return;
  using located = await locatePacks(access, repositoryId, reachable);
  const found = await access.workers.run('inspect', { packs: located.packs, oids: tips });
  if (found.includes(undefined)) await access.catalog.reinstatePacks(db, repositoryId, []);
}
