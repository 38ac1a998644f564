import type { ByteLocation } from '#shared/git/packs/reading/random-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Paths of a pack's three files: the pack, its index, and its `PackLinks`. */
export interface PackPaths {
  readonly packPath: string;
  readonly indexPath: string;
  readonly linksPath: string;
}

/** Packs can be neither stored nor read at the moment, though nothing is wrong with them. The message is shown to clients. */
export class PackStorageError extends Error {
  constructor(cause: unknown) {
    super('the pack storage cannot be reached; nothing was changed, try again later', { cause });
    this.name = 'PackStorageError';
  }
}

/** Where this process can read a stored pack. */
export interface LocatedPack {
  readonly pack: ByteLocation;
  readonly index: ByteLocation;
  readonly links: ByteLocation;
  /** To be called when the pack is no longer being read. */
  release?(): void;
}

/**
 * Stores packs. A stored pack never changes. Drivers: a directory, an object store, a fake for tests. Every method may reject
 * with a `PackStorageError`.
 */
export interface PackFiles {
  /**
   * Does the slow part of `storePack`, so that no transaction waits for it. The files stay where they are. Calling it again is
   * harmless. A pack that is prepared and then not stored is listed by `listPacks`.
   */
  preparePack(repositoryId: RepositoryId, packId: string, files: PackPaths): Promise<void>;
  /**
   * Takes over the files of a pack from quarantine. When it resolves, they are on stable storage under the pack's id. Calling
   * it again is harmless: packs with the same id have the same content.
   */
  storePack(repositoryId: RepositoryId, packId: string, files: PackPaths): Promise<void>;
  /** Where this process can read a stored pack until it is released. A driver may have to download it first. */
  locatePack(repositoryId: RepositoryId, packId: string): Promise<LocatedPack>;
  /** Repositories that have files of packs, whether or not the catalog knows them. */
  listRepositories(): Promise<readonly RepositoryId[]>;
  /** Ids of packs with any file stored, all of them at least so long ago, whether or not the catalog knows them. */
  listPacks(repositoryId: RepositoryId, olderThanSeconds: number): Promise<readonly string[]>;
  /** False when no file of the pack was stored. */
  deletePack(repositoryId: RepositoryId, packId: string): Promise<boolean>;
  /** Deletes all packs of a repository. False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
  /** Removes partial uploads that a crash left behind at least so long ago. Resolves with how many there were. */
  sweep(olderThanSeconds: number): Promise<number>;
}
