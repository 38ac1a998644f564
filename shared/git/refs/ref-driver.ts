import type { Db } from '#shared/database/schema.ts';
import type { Ref, RefChange, RefStore } from '#shared/git/git-storage.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** What keeps the refs: the port, and what git storage itself needs beyond it. Drivers: PostgreSQL, a fake for tests. */
export interface RefDriver extends RefStore {
  /** @param db to read within a transaction */
  listRefs(repositoryId: RepositoryId, db?: Db): Promise<readonly Ref[]>;
  /** Sorted likewise: those whose name begins with one of these. */
  listRefsBelow(repositoryId: RepositoryId, prefixes: readonly string[]): Promise<readonly Ref[]>;
  /** The refs that are to change and all that could stand in their way, by name; maybe others too. */
  readNeighbours(repositoryId: RepositoryId, changes: readonly RefChange[], db?: Db): Promise<ReadonlyMap<string, ObjectId>>;
  countRefs(repositoryId: RepositoryId): Promise<number>;
  /** False when there were none. */
  deleteRefs(repositoryId: RepositoryId): Promise<boolean>;
}
