import type { PackLocation } from '#shared/git/packs/open-pack.ts';
import type { PackCatalog } from '#shared/git/packs/pack-catalog.ts';
import type { PackFiles } from '#shared/git/packs/pack-files.ts';
import type { StoredRefs } from '#shared/git/refs/memory-refs.ts';
import type { WorkerPool } from '#shared/git/worker/worker-pool.ts';
import type { RepositoryId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';

/** What the servers and the reader share: where things are kept, and who does the heavy work. */
export interface RepositoryAccess {
  readonly refs: StoredRefs;
  readonly catalog: PackCatalog;
  readonly files: PackFiles;
  readonly workers: WorkerPool;
  /** Holds each repository's quarantine. */
  readonly directory: string;
  readonly log: Log;
}

/** Where the packs of a repository are at this moment. */
export async function locatePacks({ catalog, files }: RepositoryAccess, repositoryId: RepositoryId): Promise<PackLocation[]> {
  const packs = await catalog.listPacks(repositoryId);
  return Promise.all(
    packs.map(async ({ packId }) => ({ key: `${repositoryId}/${packId}`, ...(await files.locatePack(repositoryId, packId)) })),
  );
}
