import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** A directory for the files of one received pack, until they are stored or deleted. */
export interface Quarantine {
  readonly packPath: string;
  readonly indexPath: string;
  readonly linksPath: string;
  /** Deletes the directory and whatever is in it. Calling it again is harmless. */
  clear(): Promise<void>;
}

/**
 * Creates a quarantine.
 *
 * @param directory gets `<repository_id>/quarantine/<random id>/`
 */
export async function openQuarantine(directory: string, repositoryId: RepositoryId): Promise<Quarantine> {
  const place = join(directory, repositoryId, 'quarantine', crypto.randomUUID());
  await mkdir(place, { recursive: true, mode: 0o700 });
  return {
    packPath: join(place, 'pack'),
    indexPath: join(place, 'idx'),
    linksPath: join(place, 'links'),
    clear: () => rm(place, { recursive: true, force: true }),
  };
}

/** Deletes quarantines that nobody has written to for so long. Resolves with how many there were. */
export async function sweepQuarantines(directory: string, olderThanSeconds: number): Promise<number> {
  let swept = 0;
  for (const repositoryId of await readdir(directory).catch(ifMissing([]))) {
    const quarantines = join(directory, repositoryId, 'quarantine');
    for (const name of await readdir(quarantines).catch(ifMissing([]))) {
      const place = join(quarantines, name);
      // The clock has no fractions of a millisecond, and file systems have.
      if (Date.now() - Math.floor(await lastWrite(place)) < olderThanSeconds * 1000) continue;
      await rm(place, { recursive: true, force: true });
      swept++;
    }
  }
  return swept;
}

async function lastWrite(place: string): Promise<number> {
  const paths = [place, ...(await readdir(place).catch(ifMissing([]))).map((name) => join(place, name))];
  const times = await Promise.all(paths.map(async (path) => (await stat(path).catch(ifMissing(undefined)))?.mtimeMs ?? 0));
  return Math.max(...times);
}
