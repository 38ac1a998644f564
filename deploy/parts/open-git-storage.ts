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

/**
 * The repositories, with their packs in the data directory or in an object store, and what a crash left in quarantine removed.
 * @throws StartError when the object store cannot be used
 */
export async function openGitStorage(lifetime: Lifetime, db: Db, options: StartOptions): Promise<GitStorage> {
  const { settings, dataDir, log } = options;
  const packs = await openPackStorage({ ...options, objectStore: settings.objectStore });
  lifetime.onEnd(() => packs.close());
  const git = createGitStorage({
    db,
    directory: join(dataDir, 'git'),
    files: packs.files,
    log,
    tolerated: settings.toleratedFaults,
  });
  lifetime.onEnd(() => git.close());
  // Nobody else receives in this directory. An object store may have others.
  await git.sweep(settings.objectStore === undefined ? 0 : abandonedPushSeconds);
  return git;
}
