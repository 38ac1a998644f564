import type { Db } from '#shared/database/schema.ts';
import type { RepositoryId } from '#shared/ids.ts';

export interface CataloguedPack {
  packId: string;
  objectCount: number;
  bytes: number;
}

/** A pack that is part of a repository. */
export interface ListedPack extends CataloguedPack {
  /** Set where nothing needed its objects when they were last looked at. A push must not rely on them. */
  unreachableSince: Date | undefined;
}

/** Which packs are part of a repository. Drivers: PostgreSQL, memory for tests. */
export interface PackCatalog {
  /** The unreachable ones last, each kind oldest first. @param db to read within a transaction */
  listPacks(repositoryId: RepositoryId, db?: Db): Promise<readonly ListedPack[]>;
  /** How many there are but for unreachable ones. */
  countPacks(db: Db, repositoryId: RepositoryId): Promise<number>;
  /**
   * Runs `use` in the caller's transaction, or in one of its own. To its end nobody else holds the repository: no pack is
   * added or replaced, and no ref is moved.
   */
  hold<T>(db: Db | undefined, repositoryId: RepositoryId, use: (db: Db) => Promise<T>): Promise<T>;
  /** In the caller's transaction. Again is harmless; one that was unreachable or retired is so no longer. */
  addPack(db: Db, repositoryId: RepositoryId, pack: CataloguedPack, unreachableSince?: Date): Promise<void>;
  /** Takes packs off the list. Their files stay for those who have listed them: until `forgetRetired`, and a sweep. */
  retirePacks(db: Db, repositoryId: RepositoryId, packIds: readonly string[], at: Date): Promise<void>;
  /** Unreachable packs count as part of the repository like any other again, but for those named. False when there were none. */
  reinstatePacks(db: Db, repositoryId: RepositoryId, except: readonly string[]): Promise<boolean>;
  /** Of all repositories. */
  forgetRetired(before: Date): Promise<void>;
  /** Ids of those that are listed or retired: their files are needed. */
  knownPacks(repositoryId: RepositoryId, db?: Db): Promise<ReadonlySet<string>>;
  /** False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
}
