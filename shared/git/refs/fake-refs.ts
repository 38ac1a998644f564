import type { Ref, RefChange } from '#shared/git/git-storage.ts';
import { applicableChanges } from '#shared/git/refs/applicable-changes.ts';
import type { RefDriver } from '#shared/git/refs/ref-driver.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** Refs in memory, for tests. They take no part in the caller's transaction. */
export function createFakeRefs(): RefDriver {
  const repositories = new Map<RepositoryId, Map<string, ObjectId>>();
  const sorted = (repositoryId: RepositoryId): readonly Ref[] => {
    const refs = [...(repositories.get(repositoryId) ?? [])].map(([name, oid]) => ({ name, oid }));
    return refs.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  };
  const change = (repositoryId: RepositoryId, changes: readonly RefChange[]): void => {
    const refs = new Map(repositories.get(repositoryId));
    for (const { name, newOid } of changes) {
      if (newOid === undefined) refs.delete(name);
      else refs.set(name, newOid);
    }
    repositories.set(repositoryId, refs);
  };
  const current = (repositoryId: RepositoryId): ReadonlyMap<string, ObjectId> => repositories.get(repositoryId) ?? new Map();
  return {
    listRefs: async (repositoryId) => sorted(repositoryId),
    listRefsBelow: async (repositoryId, prefixes) =>
      sorted(repositoryId).filter(({ name }) => prefixes.some((prefix) => name.startsWith(prefix))),
    readRef: async (repositoryId, name) => current(repositoryId).get(name),
    readRefs: async (repositoryId, names) =>
      new Map(
        names.flatMap((name) => {
          const oid = current(repositoryId).get(name);
          return oid === undefined ? [] : [[name, oid] as const];
        }),
      ),
    readNeighbours: async (repositoryId) => new Map(current(repositoryId)),
    countRefs: async (repositoryId) => current(repositoryId).size,
    async compareAndSwap(_db, repositoryId, changes) {
      if (applicableChanges(current(repositoryId), changes).length < changes.length) return false;
      change(repositoryId, changes);
      return true;
    },
    async swapEach(_db, repositoryId, changes) {
      const applicable = applicableChanges(current(repositoryId), changes);
      change(repositoryId, applicable);
      return new Set(applicable.map(({ name }) => name));
    },
    async deleteRefs(repositoryId) {
      const existed = current(repositoryId).size > 0;
      repositories.delete(repositoryId);
      return existed;
    },
  };
}
