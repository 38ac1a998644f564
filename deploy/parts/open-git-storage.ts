import { join } from 'node:path';
import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { openPackStorage } from '#deploy/parts/pack-storage.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import type { Db } from '#shared/database/db.ts';
import type { GitStorage } from '#shared/git/git-storage.ts';
import { createGitStorage } from '#shared/git/storage/create-git-storage.ts';
import { limits } from '#shared/limits.ts';

/** Longer than any push may take: what has been in quarantine for this long was left by a crash. */
export const abandonedPushSeconds = 2 * limits.push.seconds;

export interface GitStorageUse extends StartOptions {
  /**
   * 'alone': no other process uses the data directory. 'shared': others do, and this one maintains it. 'guest': another one
   * maintains it.
   */
  use: 'alone' | 'shared' | 'guest';
}

/**
 * The repositories, with their packs in the data directory or in an object store, and what a crash left in quarantine removed.
 * @throws StartError when the object store cannot be used
 */
export async function openGitStorage(lifetime: Lifetime, db: Db, options: GitStorageUse): Promise<GitStorage> {
  const { settings, dataDir, log, use } = options;
  const packs = await openPackStorage({ ...options, objectStore: settings.objectStore, isGuest: use === 'guest' });
  lifetime.onEnd(() => packs.close());
  const git = createGitStorage({
    db,
    directory: join(dataDir, 'git'),
    files: packs.files,
    log,
    indexer: settings.gitIndexer,
    tolerated: settings.toleratedFaults,
  });
  lifetime.onEnd(() => git.close());
  // An object store may have users on other machines.
  if (use !== 'guest') await git.sweep(settings.objectStore === undefined && use === 'alone' ? 0 : abandonedPushSeconds);
  return git;
}
