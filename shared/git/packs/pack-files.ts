import type { ByteLocation } from '#shared/git/packs/random-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Where packs are kept once they are in. They never change. Drivers: a directory, memory for tests. */
export interface PackFiles {
  /**
   * Takes over two finished files from quarantine. When it resolves they are on stable storage under the pack's id.
   * Again is harmless: a pack of the same id has the same content.
   */
  keepPack(repositoryId: RepositoryId, packId: string, files: { packPath: string; indexPath: string }): Promise<void>;
  /** Where to read a kept pack. */
  locatePack(repositoryId: RepositoryId, packId: string): { pack: ByteLocation; index: ByteLocation };
  /** Ids of the packs that are there, whether or not they are part of the repository. */
  listPacks(repositoryId: RepositoryId): Promise<readonly string[]>;
  deletePack(repositoryId: RepositoryId, packId: string): Promise<boolean>;
  /** All of a repository's. False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
}
