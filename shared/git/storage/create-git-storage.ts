import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Clock, systemClock } from '#shared/clock.ts';
import type { Db } from '#shared/database/db.ts';
import { createGitBrowser } from '#shared/git/browsing/git-browser.ts';
import type { GitIndexer } from '#shared/git/git-indexers.ts';
import type { GitStorage } from '#shared/git/git-storage.ts';
import { collectGarbage } from '#shared/git/maintenance/collect-garbage.ts';
import { repack } from '#shared/git/maintenance/repack.ts';
import type { TolerableFault } from '#shared/git/objects/tolerable-faults.ts';
import { createPostgresPackCatalog } from '#shared/git/packs/catalog/postgres-pack-catalog.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import { openQuarantine, sweepQuarantines } from '#shared/git/packs/files/quarantine.ts';
import { PushSlots, receiveInSlot } from '#shared/git/receive-pack/push-slots.ts';
import { type PushLimits, receivePack } from '#shared/git/receive-pack/receive-pack.ts';
import { stagePack } from '#shared/git/receive-pack/stage-pack.ts';
import { createPostgresRefs } from '#shared/git/refs/postgres-refs.ts';
import { createGuardedRefs } from '#shared/git/repository/guarded-refs.ts';
import type { RepositoryAccess } from '#shared/git/repository/repository-access.ts';
import { createGitReader } from '#shared/git/storage/git-reader.ts';
import { takeSnapshot } from '#shared/git/storage/snapshot.ts';
import { sweepPacks } from '#shared/git/storage/sweep-packs.ts';
import { takeFetchedPack } from '#shared/git/storage/take-fetched-pack.ts';
import { uploadPack } from '#shared/git/upload-pack/upload-pack.ts';
import { CallingThread } from '#shared/git/worker/calling-thread.ts';
import { WorkerPool } from '#shared/git/worker/worker-pool.ts';
import { limits as platformLimits } from '#shared/limits.ts';
import type { Log } from '#shared/log.ts';

/** Settings that do not depend on where refs and packs are kept. */
export interface GitStorageOptions {
  /** Absolute path. Holds `<repository_id>/quarantine`, and `<repository_id>/packs` unless packs are kept elsewhere. */
  directory: string;
  log: Log;
  /** Default: `limits.push`. */
  limits?: PushLimits;
  /** How packs are received and read (`gitIndexers`). Default: native. */
  indexer?: GitIndexer;
  /** Of the native indexer. Default: one for each core, at least two. */
  threads?: number;
  /** Default: the system's clock. */
  clock?: Clock;
  /** Faults that objects may have; default: none. */
  tolerated?: readonly TolerableFault[];
}

/** Where refs, the list of packs and the packs themselves are kept. */
export type GitDrivers = Pick<RepositoryAccess, 'refs' | 'catalog' | 'files'>;

/**
 * Git storage with refs in PostgreSQL.
 *
 * @param options.files where packs are kept. Default: in `directory`, which all processes that serve these repositories share.
 */
export function createGitStorage(options: GitStorageOptions & { db: Db; files?: PackFiles }): GitStorage {
  return createGitStorageFrom(options, {
    ...createPostgresGitDrivers(options.db),
    files: options.files ?? createDirectoryPackFiles(options.directory),
  });
}

/** Refs and the list of packs in PostgreSQL. */
export function createPostgresGitDrivers(db: Db): Pick<GitDrivers, 'refs' | 'catalog'> {
  return { refs: createPostgresRefs(db), catalog: createPostgresPackCatalog(db) };
}

/** Git storage on the given drivers. */
export function createGitStorageFrom(options: GitStorageOptions, drivers: GitDrivers): GitStorage {
  const { directory, log, limits = platformLimits.push, clock = systemClock, tolerated = [] } = options;
  const { catalog, files } = drivers;
  const workers = options.indexer === 'isomorphic-git' ? new CallingThread() : new WorkerPool(options.threads);
  const shared = { catalog, files, directory, log, clock, tolerated, workers };
  const slots = new PushSlots(workers.size, clock);
  const access: RepositoryAccess = { ...shared, refs: createGuardedRefs(drivers.refs, shared) };
  return {
    refs: access.refs,
    server: {
      receivePack: (repository, stream, applyPush) =>
        receiveInSlot(slots, stream, applyPush, (slotStream, apply) =>
          receivePack(access, limits, repository, slotStream, apply),
        ),
      uploadPack: (repository, stream) => uploadPack(access, repository, stream),
    },
    reader: createGitReader(access),
    browser: createGitBrowser(access),
    maintenance: {
      needsRepack: async (db, repositoryId) => (await catalog.countPacks(db, repositoryId)) >= platformLimits.packs.joinFrom,
      repack: (repositoryId, signal) => repack(access, repositoryId, signal),
      collectGarbage: (repositoryId, readRoots, signal) => collectGarbage(access, repositoryId, readRoots, signal),
    },
    async stagePack(repositoryId, pack, signal) {
      const quarantine = await openQuarantine(directory, repositoryId);
      const staged = await takeFetchedPack(quarantine, pack, signal, (input) =>
        stagePack(access, { limits, repositoryId, quarantine, input, clientGone: signal }),
      );
      if (staged === undefined) await quarantine.clear();
      return staged;
    },
    async takeSnapshot(repositoryId, commit, pack, signal) {
      const quarantine = await openQuarantine(directory, repositoryId);
      const { packBytes, objectBytes, objects } = limits;
      return takeFetchedPack(quarantine, pack, signal, (input) =>
        takeSnapshot(access, { limits: { packBytes, objectBytes, objects }, quarantine, commit, input, signal }),
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
