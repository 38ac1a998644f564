import type { Db } from '#shared/database/db.ts';
import type { Ref, RefChange, RefStore } from '#shared/git/git-storage.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** Stores the refs: the port, and what git storage itself needs beyond it. Drivers: PostgreSQL, a fake for tests. */
export interface RefDriver extends RefStore {
  /** All refs, sorted by name in byte order. @param db to read within a transaction */
  listRefs(repositoryId: RepositoryId, db?: Db): Promise<readonly Ref[]>;
  /** The refs whose names begin with one of these prefixes, in the same order. */
  listRefsBelow(repositoryId: RepositoryId, prefixes: readonly string[]): Promise<readonly Ref[]>;
  /** The refs that are to change and all refs whose names could conflict with them, by name. May include others. */
  readNeighbours(repositoryId: RepositoryId, changes: readonly RefChange[], db?: Db): Promise<ReadonlyMap<string, ObjectId>>;
  countRefs(repositoryId: RepositoryId): Promise<number>;
  /** Deletes all refs of a repository. False when there were none. */
  deleteRefs(repositoryId: RepositoryId): Promise<boolean>;
}
