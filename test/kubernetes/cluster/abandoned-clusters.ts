import { readdir, readFile, readlink, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '#test/support/database/test-postgres.ts';

/**
 * Where clusters keep their files, each in a directory of its own; the file `owner` in it names the process that started it. Not
 * among the temporary files of a run: the next run removes those of one that was killed, and with them the process ids.
 */
export const clustersDirectory = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'paas/kubernetes-clusters');

/** Ends clusters whose owner was killed before it could: processes that still work in their directory, and that. */
export async function removeAbandonedClusters(): Promise<void> {
  const names = await readdir(clustersDirectory).catch(() => []);
  for (const directory of names.map((name) => join(clustersDirectory, name))) {
    const owner = Number(await readFile(join(directory, 'owner'), 'utf8').catch(() => Number.NaN));
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    for (const file of (await readdir(directory)).filter((name) => name.endsWith('.pid'))) {
      const pid = Number(await readFile(join(directory, file), 'utf8'));
      // The id may be another process's by now; those of a cluster work in its directory.
      const place = await readlink(`/proc/${pid}/cwd`).catch(() => undefined);
      if (place === directory) process.kill(pid, 'SIGKILL');
    }
    await rm(directory, { recursive: true, force: true });
  }
}
