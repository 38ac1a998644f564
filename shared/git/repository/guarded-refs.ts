import type { Db } from '#shared/database/schema.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import { locatePacks, type RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/**
 * The same refs, which never come to point at what is in unreachable packs alone: when one is to, those packs count as
 * part of the repository again.
 */
export function createGuardedRefs(refs: RefDriver, access: Omit<RepositoryAccess, 'refs'>): RefDriver {
  // Within a transaction that holds the repository nothing becomes unreachable: a push of many refs asks once.
  const withoutUnreachable = new WeakMap<Db, RepositoryId>();
  const guard = async <T>(
    db: Db,
    repositoryId: RepositoryId,
    changes: readonly RefChange[],
    swap: (db: Db) => Promise<T>,
  ): Promise<T> => {
    const tips = [...new Set(changes.flatMap(({ newOid }) => newOid ?? []))];
    if (tips.length === 0 || withoutUnreachable.get(db) === repositoryId) return await swap(db);
    return await access.catalog.hold(db, repositoryId, async (held) => {
      await reinstateTips(access, held, repositoryId, tips);
      if (db.isTransaction) withoutUnreachable.set(db, repositoryId);
      return await swap(held);
    });
  };
  return {
    ...refs,
    compareAndSwap: (db, repositoryId, changes) =>
      guard(db, repositoryId, changes, (held) => refs.compareAndSwap(held, repositoryId, changes)),
    swapEach: (db, repositoryId, changes) =>
      guard(db, repositoryId, changes, (held) => refs.swapEach(held, repositoryId, changes)),
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
