import type { Db } from '#shared/database/schema.ts';
import { conflictingRef } from '#shared/git/refs/ref-name.ts';
import type { Ref, RefStore } from '#shared/git/repository.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

export interface StoredRefs extends RefStore {
  /** @param db to read within a transaction */
  listRefs(repositoryId: RepositoryId, db?: Db): Promise<readonly Ref[]>;
  /** False when there were none. */
  deleteRefs(repositoryId: RepositoryId): Promise<boolean>;
}

/** The twin for tests: no database, and so no part in anybody's transaction. */
export function createMemoryRefs(): StoredRefs {
  const repositories = new Map<RepositoryId, Map<string, ObjectId>>();
  return {
    async listRefs(repositoryId) {
      const refs = [...(repositories.get(repositoryId) ?? [])].map(([name, oid]) => ({ name, oid }));
      return refs.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
    },
    async readRef(repositoryId, name) {
      return repositories.get(repositoryId)?.get(name);
    },
    async compareAndSwap(_db, repositoryId, changes) {
      const current = repositories.get(repositoryId) ?? new Map<string, ObjectId>();
      if (changes.some(({ name, oldOid }) => current.get(name) !== oldOid)) return false;
      const next = new Map(current);
      for (const { name } of changes) next.delete(name);
      for (const { name, newOid } of changes) {
        if (newOid === undefined) continue;
        if (conflictingRef(name, new Set(next.keys())) !== undefined) return false;
        next.set(name, newOid);
      }
      repositories.set(repositoryId, next);
      return true;
    },
    async deleteRefs(repositoryId) {
      const existed = (repositories.get(repositoryId)?.size ?? 0) > 0;
      repositories.delete(repositoryId);
      return existed;
    },
  };
}
