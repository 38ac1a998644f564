/**
 * A process that repacks or collects garbage and dies by SIGKILL at a named point. Arguments: URL of the database, directory
 * of the storage, id of the repository, 'repack' or 'collect', the point.
 */
import { connectPostgres } from '#shared/database/postgres.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createGitStorageFrom, createPostgresGitDrivers } from '#shared/git/storage/create-git-storage.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';

const [, , url = '', directory = '', id = '', task = '', point = ''] = process.argv;
const { db } = connectPostgres(url, () => undefined, 5);
const dieAt = (reached: string): void => {
  if (reached === point) process.kill(process.pid, 'SIGKILL');
};
const { refs, catalog } = createPostgresGitDrivers(db);
const files = createDirectoryPackFiles(directory);
const storage = createGitStorageFrom(
  { directory, log: createLog('warn', (line) => process.stderr.write(`${line}\n`)) },
  {
    refs,
    files: {
      ...files,
      async storePack(...pack) {
        await files.storePack(...pack);
        dieAt('pack stored');
      },
    },
    catalog: {
      ...catalog,
      async retirePacks(...packs) {
        await catalog.retirePacks(...packs);
        dieAt('packs retired');
      },
      async withLock(...args) {
        const result = await catalog.withLock(...args);
        dieAt('committed');
        return result;
      },
    },
  },
);
const repositoryId = id as RepositoryId;
const running = new AbortController().signal;
if (task === 'repack') await storage.maintenance.repack(repositoryId, running);
else await storage.maintenance.collectGarbage(repositoryId, async () => [], running);
