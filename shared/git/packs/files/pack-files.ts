import type { ByteLocation } from '#shared/git/packs/reading/random-access.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Paths of the pack, its index, and what `PackLinks` says of it. */
export interface FinishedPack {
  readonly packPath: string;
  readonly indexPath: string;
  readonly linksPath: string;
}

/** Packs can neither be stored nor read for the moment, though nothing is wrong with them. The message is for clients. */
export class PackStorageError extends Error {
  constructor(cause: unknown) {
    super('the storage of packs cannot be reached; nothing was changed, try again in a while', { cause });
    this.name = 'PackStorageError';
  }
}

export interface KeptPack {
  readonly pack: ByteLocation;
  readonly index: ByteLocation;
  readonly links: ByteLocation;
  /** To be called when nobody reads it any more. */
  release?(): void;
}

/**
 * Where packs are kept once they are in. They never change. Drivers: a directory, an object store, memory for tests.
 * Every method may reject with a `PackStorageError`.
 */
export interface PackFiles {
  /**
   * Does of `keepPack` what takes long, so that no transaction waits for it. It leaves the files where they are. Again is
   * harmless; a pack that is then not kept is listed by `listPacks`.
   */
  preparePack(repositoryId: RepositoryId, packId: string, files: FinishedPack): Promise<void>;
  /**
   * Takes over the finished files of a pack from quarantine. When it resolves they are on stable storage under the pack's id.
   * Again is harmless: a pack of the same id has the same content.
   */
  keepPack(repositoryId: RepositoryId, packId: string, files: FinishedPack): Promise<void>;
  /** Where this process can read a kept pack, until it is released; a driver may have to bring it here first. */
  locatePack(repositoryId: RepositoryId, packId: string): Promise<KeptPack>;
  /** Repositories that have packs, whether or not anybody knows of them. */
  listRepositories(): Promise<readonly RepositoryId[]>;
  /** Ids of the packs of which anything was stored, all of it at least so long ago, part of the repository or not. */
  listPacks(repositoryId: RepositoryId, olderThanSeconds: number): Promise<readonly string[]>;
  /** False when there was nothing of it. */
  deletePack(repositoryId: RepositoryId, packId: string): Promise<boolean>;
  /** All of a repository's. False when there were none. */
  deletePacks(repositoryId: RepositoryId): Promise<boolean>;
  /** Removes what storing that a crash cut short so long ago has left beside packs. Resolves with how much there was. */
  sweep(olderThanSeconds: number): Promise<number>;
}
