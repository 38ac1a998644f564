import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '#shared/clock.ts';
import type { Db } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import { GitFault } from '#shared/git/git-fault.ts';
import type { GitStorage } from '#shared/git/git-storage.ts';
import { collectGarbage } from '#shared/git/maintenance/collect-garbage.ts';
import { repack } from '#shared/git/maintenance/repack.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { createFakePackCatalog } from '#shared/git/packs/catalog/fake-pack-catalog.ts';
import { createPostgresPackCatalog } from '#shared/git/packs/catalog/postgres-pack-catalog.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createFakePackFiles } from '#shared/git/packs/files/fake-pack-files.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import { openQuarantine, type Quarantine, sweepQuarantines } from '#shared/git/packs/files/quarantine.ts';
import { PushTurns, receiveInTurn } from '#shared/git/receive-pack/push-slots.ts';
import { type PushLimits, receivePack } from '#shared/git/receive-pack/receive-pack.ts';
import { stagePack } from '#shared/git/receive-pack/stage-pack.ts';
import { createFakeRefs } from '#shared/git/refs/fake-refs.ts';
import { createPostgresRefs } from '#shared/git/refs/postgres-refs.ts';
import { createGuardedRefs } from '#shared/git/repository/guarded-refs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { createReader } from '#shared/git/storage/git-reader.ts';
import { takeSnapshot } from '#shared/git/storage/snapshot.ts';
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
  /** Default: the system's. */
  clock?: Clock;
  /** Faults of objects that are let through; default: none. */
  tolerated?: readonly TolerableFault[];
}

/**
 * Refs in PostgreSQL, packs where every process that serves the same repositories has them.
 *
 * @param options.files default: in `directory`, which those processes then must share
 */
export function createGitStorage(options: GitStorageOptions & { db: Db; files?: PackFiles }): GitStorage {
  return createGitStorageOf(options, {
    ...postgresParts(options.db),
    files: options.files ?? createDirectoryPackFiles(options.directory),
  });
}

export function postgresParts(db: Db): Pick<GitStorageParts, 'refs' | 'catalog'> {
  return { refs: createPostgresRefs(db), catalog: createPostgresPackCatalog(db) };
}

/** The twin for tests: everything in memory, but for what is in quarantine. It takes no part in transactions. */
export function createFakeGitStorage(options: GitStorageOptions): GitStorage {
  return createGitStorageOf(options, {
    refs: createFakeRefs(),
    catalog: createFakePackCatalog(),
    files: createFakePackFiles(),
  });
}

/** What a storage keeps things in. */
export type GitStorageParts = Pick<RepositoryAccess, 'refs' | 'catalog' | 'files'>;

/** Of drivers that somebody else has chosen. */
export function createGitStorageOf(options: GitStorageOptions, kept: GitStorageParts): GitStorage {
  const { directory, log, limits = platformLimits.push, clock = systemClock, tolerated = [] } = options;
  const { catalog, files } = kept;
  const parts = { catalog, files, directory, log, clock, tolerated, workers: new WorkerPool(options.threads) };
  const turns = new PushTurns(parts.workers.size, clock);
  const access: RepositoryAccess = { ...parts, refs: createGuardedRefs(kept.refs, parts) };
  return {
    refs: access.refs,
    server: {
      receivePack: (repository, stream, applyPush) =>
        receiveInTurn(turns, stream, applyPush, (inTurn, apply) => receivePack(access, limits, repository, inTurn, apply)),
      uploadPack: (repository, stream) => uploadPack(access, repository, stream),
    },
    reader: createReader(access),
    maintenance: {
      needsRepack: async (db, repositoryId) => (await catalog.countPacks(db, repositoryId)) >= platformLimits.packs.joinFrom,
      repack: (repositoryId, signal) => repack(access, repositoryId, signal),
      collectGarbage: (repositoryId, readRoots, signal) => collectGarbage(access, repositoryId, readRoots, signal),
    },
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
        takeSnapshot(access, { packBytes, objectBytes, objects }, quarantine, commit, input, signal),
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

/** Removes packs that others stand in for, and those that were put in place for a transaction which then did not commit. */
async function sweepPacks({ catalog, files, clock }: RepositoryAccess, olderThanSeconds: number): Promise<number> {
  await catalog.forgetRetired(new Date(clock.now().getTime() - olderThanSeconds * 1000));
  let swept = 0;
  for (const repositoryId of await files.listRepositories()) {
    const known = await catalog.knownPacks(repositoryId);
    if ((await files.listPacks(repositoryId, olderThanSeconds)).every((packId) => known.has(packId))) continue;
    // Looked at again while nobody can put one in: a pack may come back that was left by another push long ago.
    await catalog.hold(undefined, repositoryId, async (db) => {
      const kept = await files.listPacks(repositoryId, olderThanSeconds);
      const needed = await catalog.knownPacks(repositoryId, db);
      for (const packId of kept) if (!needed.has(packId) && (await files.deletePack(repositoryId, packId))) swept++;
    });
  }
  return swept;
}
