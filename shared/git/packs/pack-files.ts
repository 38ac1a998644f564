import type { ByteLocation } from '#shared/git/packs/random-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Paths of the pack, its index, and what `PackLinks` says of it. */
export interface FinishedPack {
  readonly packPath: string;
  readonly indexPath: string;
  readonly linksPath: string;
}

export interface KeptPack {
  readonly pack: ByteLocation;
  readonly index: ByteLocation;
  readonly links: ByteLocation;
}

/** Where packs are kept once they are in. They never change. Drivers: a directory, memory for tests. */
export interface PackFiles {
  /**
   * Takes over the finished files of a pack from quarantine. When it resolves they are on stable storage under the pack's id.
   * Again is harmless: a pack of the same id has the same content.
   */
  keepPack(repositoryId: RepositoryId, packId: string, files: FinishedPack): Promise<void>;
  /** Where this process can read a kept pack; a driver may have to bring it here first. Rejects when it is not there. */
  locatePack(repositoryId: RepositoryId, packId: string): Promise<KeptPack>;
  /** Repositories that have packs, whether or not anybody knows of them. */
  listRepositories(): Promise<readonly RepositoryId[]>;
  /** Ids of the packs that were received at least so long ago, whether or not they are part of the repository. */
  listPacks(repositoryId: RepositoryId, olderThanSeconds: number): Promise<readonly string[]>;
  deletePack(repositoryId: RepositoryId, packId: string): Promise<boolean>;
  /** All of a repository's. False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
}
