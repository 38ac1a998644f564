import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Db } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/directory-pack-files.ts';
import { createMemoryPackFiles } from '#shared/git/packs/memory-pack-files.ts';
import { createMemoryPackCatalog, createPostgresPackCatalog } from '#shared/git/packs/pack-catalog.ts';
import type { PackFiles } from '#shared/git/packs/pack-files.ts';
import { openQuarantine, type Quarantine, sweepQuarantines } from '#shared/git/packs/quarantine.ts';
import { createReader } from '#shared/git/reader.ts';
import { type PushLimits, receivePack } from '#shared/git/receive-pack/receive-pack.ts';
import { stagePack } from '#shared/git/receive-pack/stage-pack.ts';
import { createMemoryRefs } from '#shared/git/refs/memory-refs.ts';
import { createPostgresRefs } from '#shared/git/refs/postgres-refs.ts';
import type { GitStorage } from '#shared/git/repository.ts';
import type { RepositoryAccess } from '#shared/git/repository-access.ts';
import { takeSnapshot } from '#shared/git/snapshot.ts';
import { uploadPack } from '#shared/git/upload-pack/upload-pack.ts';
import { WorkerPool } from '#shared/git/worker/worker-pool.ts';
import { limits as platformLimits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';

export interface GitStorageOptions {
  /** Holds `<repository_id>/quarantine`, and `<repository_id>/packs` unless they are kept elsewhere; absolute. */
  directory: string;
  log: Log;
  limits?: PushLimits;
  /** Default: one a core, two at least. */
  threads?: number;
}

/**
 * Refs in PostgreSQL, packs where every process that serves the same repositories has them.
 *
 * @param options.files default: in `directory`, which those processes then must share
 */
export function createGitStorage(options: GitStorageOptions & { db: Db; files?: PackFiles }): GitStorage {
  return createStorage(options, {
    refs: createPostgresRefs(options.db),
    catalog: createPostgresPackCatalog(options.db),
    files: options.files ?? createDirectoryPackFiles(options.directory),
  });
}

/** The twin for tests: everything in memory, but for what is in quarantine. It takes no part in transactions. */
export function createMemoryGitStorage(options: GitStorageOptions): GitStorage {
  return createStorage(options, { refs: createMemoryRefs(), catalog: createMemoryPackCatalog(), files: createMemoryPackFiles() });
}

function createStorage(options: GitStorageOptions, kept: Pick<RepositoryAccess, 'refs' | 'catalog' | 'files'>): GitStorage {
  const { directory, log, limits = platformLimits.push } = options;
  const access: RepositoryAccess = { ...kept, directory, log, workers: new WorkerPool(options.threads) };
  return {
    refs: access.refs,
    server: {
      receivePack: (repository, stream, applyPush) => receivePack(access, limits, repository, stream, applyPush),
      uploadPack: (repository, stream) => uploadPack(access, repository, stream),
    },
    reader: createReader(access),
    async stagePack(repositoryId, pack, signal) {
      const quarantine = await openQuarantine(directory, repositoryId);
      const staged = await takeFetched(quarantine, pack, signal, (input) =>
        stagePack(access, limits, repositoryId, quarantine, input, signal),
      );
      if (staged === undefined) await quarantine.clear();
      return staged;
    },
    async takeSnapshot(repositoryId, commit, pack, signal) {
      const quarantine = await openQuarantine(directory, repositoryId);
      const { packBytes, objectBytes, objects } = limits;
      return takeFetched(quarantine, pack, signal, (input) =>
        takeSnapshot(access.workers, { packBytes, objectBytes, objects }, quarantine, commit, input, signal),
      );
    },
    async deleteRepository(repositoryId) {
      const refs = await access.refs.deleteRefs(repositoryId);
      const rows = await access.catalog.deletePacks(repositoryId);
      const packs = await access.files.deletePacks(repositoryId);
      await rm(join(directory, repositoryId), { recursive: true, force: true });
      return refs || rows || packs;
    },
    sweep: async (olderThanSeconds) =>
      (await sweepQuarantines(directory, olderThanSeconds)) +
      (await access.files.sweep(olderThanSeconds)) +
      (await sweepPacks(access, olderThanSeconds)),
    close: () => access.workers.close(),
  };
}

/** Runs `take` on a pack that was fetched. What it cannot be taken for is told to the app's owner, and nothing of it is left. */
async function takeFetched<Taken>(
  quarantine: Quarantine,
  pack: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  take: (input: AsyncIterator<Uint8Array>) => Promise<Taken>,
): Promise<Taken> {
  const input = watched(pack);
  try {
    return await take(input.chunks);
  } catch (error) {
    await quarantine.clear();
    signal.throwIfAborted();
    // A pack that breaks off is unsound because of what broke it.
    if (input.problem() !== undefined) throw input.problem();
    if (!(error instanceof GitFault)) throw error;
    throw new AppError('validation_failed', `The repository cannot be taken: ${error.message}.`, { cause: error });
  }
}

/** The same chunks, with what the sender failed of kept aside: on the way through a worker it would get lost. */
function watched(pack: AsyncIterable<Uint8Array>): { chunks: AsyncIterator<Uint8Array>; problem(): unknown } {
  let problem: unknown;
  const read = async function* () {
    try {
      yield* pack;
    } catch (error) {
      problem = error;
      throw error;
    }
  };
  return { chunks: read(), problem: () => problem };
}

/** Removes packs that were put in place for a transaction which then did not commit. */
async function sweepPacks({ catalog, files }: RepositoryAccess, olderThanSeconds: number): Promise<number> {
  let swept = 0;
  for (const repositoryId of await files.listRepositories()) {
    // The files first: a pack that is admitted in between is then known to be listed.
    const kept = await files.listPacks(repositoryId, olderThanSeconds);
    const listed = new Set((await catalog.listPacks(repositoryId)).map(({ packId }) => packId));
    for (const packId of kept) {
      // Pushed again at this very moment, an abandoned pack is part of the repository after all.
      const remove = (): Promise<boolean> => files.deletePack(repositoryId, packId);
      if (!listed.has(packId) && (await catalog.ifUnlisted(repositoryId, packId, remove))) swept++;
    }
  }
  return swept;
}
