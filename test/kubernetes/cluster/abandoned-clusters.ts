import { readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isAlive } from '#test/support/database/test-postgres.ts';

/** Of the directory of a test cluster; the file `owner` in it names the process that started it. */
export const clusterPrefix = 'paas-kubernetes-';

/** Ends clusters whose owner was killed before it could: processes that still work in their directory, and that. */
export async function removeAbandonedClusters(): Promise<void> {
  const names = await readdir(tmpdir());
  for (const directory of names.filter((name) => name.startsWith(clusterPrefix)).map((name) => join(tmpdir(), name))) {
    const owner = Number(await readFile(join(directory, 'owner'), 'utf8').catch(() => Number.NaN));
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    for (const file of (await readdir(directory)).filter((name) => name.endsWith('.pid'))) {
      const pid = Number(await readFile(join(directory, file), 'utf8'));
      // The id may be another process's by now.
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      if (command.includes(directory)) process.kill(pid, 'SIGKILL');
    }
    await rm(directory, { recursive: true, force: true });
  }
}
