import { chmod, mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '#test/support/database/test-postgres.ts';

const shared = '/dev/shm';
const prefix = 'paas-tests-';

/** Far more than a run takes at once; what is in memory is taken from the programs that are tested. */
const roomBytes = 4 * 2 ** 30;

/** A directory for all temporary files of a run. */
export interface TemporaryDirectory {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * In memory where there is room for it and programs may be started from it, because most of what tests write are small
 * files that live for a second; else undefined: then they go where the system has them.
 */
export async function openTemporaryDirectory(): Promise<TemporaryDirectory | undefined> {
  if (!(await isRoomy())) return undefined;
  const path = await mkdtemp(join(shared, prefix));
  // As /tmp is: other users, as PostgreSQL's own, must get through, and programs started by them write here too.
  await chmod(path, 0o1777);
  await writeFile(join(path, 'owner'), String(process.pid));
  return { path, remove: () => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }) };
}

/** Where temporary files of runs may be that were killed before they could remove them. */
export async function listAbandonedDirectories(): Promise<readonly string[]> {
  const names = await readdir(shared).catch(() => []);
  const abandoned: string[] = [];
  for (const path of names.filter((name) => name.startsWith(prefix)).map((name) => join(shared, name))) {
    const owner = Number(await readFile(join(path, 'owner'), 'utf8').catch(() => Number.NaN));
    if (Number.isInteger(owner) && !isAlive(owner)) abandoned.push(path);
  }
  return abandoned;
}

async function isRoomy(): Promise<boolean> {
  const mounts = await readFile('/proc/self/mounts', 'utf8').catch(() => '');
  const options = mounts
    .split('\n')
    .map((line) => line.split(' '))
    .findLast(([, place]) => place === shared)?.[3];
  if (options === undefined || options.split(',').some((option) => option === 'noexec' || option === 'ro')) return false;
  const { bavail, bsize } = await statfs(shared);
  return bavail * bsize >= roomBytes && process.availableMemory() >= 2 * roomBytes;
}
