import type { Db } from '#shared/database/db.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** A pack as the catalog records it. */
export interface CataloguedPack {
  /** The pack's trailing checksum, 40 hex digits. */
  packId: string;
  objectCount: number;
  bytes: number;
}

/** A pack that is part of a repository. */
export interface ListedPack extends CataloguedPack {
  /** Since when nothing has needed its objects; undefined for a reachable pack. A push must not rely on an unreachable pack. */
  unreachableSince: Date | undefined;
}

/** Records which packs are part of which repository. Drivers: PostgreSQL, a fake for tests. */
export interface PackCatalog {
  /** Reachable packs first, then unreachable ones; the oldest first in each group. @param db to read within a transaction */
  listPacks(repositoryId: RepositoryId, db?: Db): Promise<readonly ListedPack[]>;
  /** How many reachable packs there are. */
  countPacks(db: Db, repositoryId: RepositoryId): Promise<number>;
  /**
   * Runs `use` with the repository locked, in the caller's transaction or in one of its own. Until that transaction ends,
   * nobody else adds or replaces a pack of the repository or moves its refs.
   */
  withLock<T>(db: Db | undefined, repositoryId: RepositoryId, use: (db: Db) => Promise<T>): Promise<T>;
  /**
   * Adds a pack in the caller's transaction. A pack that is listed already takes on the new state: reachable, or unreachable
   * since a time, and no longer retired.
   */
  addPack(db: Db, repositoryId: RepositoryId, pack: CataloguedPack, unreachableSince?: Date): Promise<void>;
  /** Takes packs off the list. Their files stay, for readers that listed them before, until `forgetRetired` and a sweep. */
  retirePacks(db: Db, repositoryId: RepositoryId, packIds: readonly string[], at: Date): Promise<void>;
  /** Makes all unreachable packs reachable again, except those named. False when there were none. */
  reinstatePacks(db: Db, repositoryId: RepositoryId, except: readonly string[]): Promise<boolean>;
  /** Forgets packs that were retired before that time, in all repositories. */
  forgetRetired(before: Date): Promise<void>;
  /** Ids of the packs that are listed or retired: their files are needed. */
  knownPacks(repositoryId: RepositoryId, db?: Db): Promise<ReadonlySet<string>>;
  /** Forgets all packs of a repository. False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
}
