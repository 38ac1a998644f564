import type { Db } from '#shared/database/db.ts';
import type { ListedPack, PackCatalog } from '#shared/git/packs/catalog/pack-catalog.ts';
import type { RepositoryId } from '#shared/ids.ts';

interface FakePack extends ListedPack {
  retiredAt: Date | undefined;
}

/** A catalog in memory, for tests. It takes no part in the caller's transaction, but its lock excludes other locks. */
export function createFakePackCatalog(): PackCatalog {
  const repositories = new Map<RepositoryId, Map<string, FakePack>>();
  const locks = new Map<RepositoryId, Promise<unknown>>();
  const packsOf = (repositoryId: RepositoryId): FakePack[] => [...(repositories.get(repositoryId)?.values() ?? [])];
  const listed = (repositoryId: RepositoryId): FakePack[] =>
    packsOf(repositoryId)
      .filter(({ retiredAt }) => retiredAt === undefined)
      .toSorted((a, b) => (a.unreachableSince?.getTime() ?? 0) - (b.unreachableSince?.getTime() ?? 0));
  return {
    async listPacks(repositoryId) {
      return listed(repositoryId);
    },
    async countPacks(_db, repositoryId) {
      return listed(repositoryId).filter(({ unreachableSince }) => unreachableSince === undefined).length;
    },
    async withLock(db, repositoryId, use) {
      // The caller's transaction may hold the lock already, and this fake cannot know that.
      if (db?.isTransaction === true) return await use(db);
      const result = (locks.get(repositoryId) ?? Promise.resolve()).then(() => use(db as Db));
      locks.set(
        repositoryId,
        result.catch(() => undefined),
      );
      return await result;
    },
    async addPack(_db, repositoryId, pack, unreachableSince) {
      const packs = repositories.get(repositoryId) ?? new Map<string, FakePack>();
      packs.set(pack.packId, { ...pack, unreachableSince, retiredAt: undefined });
      repositories.set(repositoryId, packs);
    },
    async retirePacks(_db, repositoryId, packIds, at) {
      for (const pack of packsOf(repositoryId)) if (packIds.includes(pack.packId)) pack.retiredAt = at;
    },
    async reinstatePacks(_db, repositoryId, except) {
      const found = listed(repositoryId).filter(
        ({ packId, unreachableSince }) => unreachableSince !== undefined && !except.includes(packId),
      );
      for (const pack of found) pack.unreachableSince = undefined;
      return found.length > 0;
    },
    async forgetRetired(before) {
      for (const packs of repositories.values())
        for (const { packId, retiredAt } of packs.values())
          if (retiredAt !== undefined && retiredAt <= before) packs.delete(packId);
    },
    async knownPacks(repositoryId) {
      return new Set(repositories.get(repositoryId)?.keys() ?? []);
    },
    async deletePacks(repositoryId) {
      return repositories.delete(repositoryId);
    },
  };
}
