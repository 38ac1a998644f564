/**
 * A process that repacks or collects garbage and dies by SIGKILL at a named point. Arguments: URL of the database, directory
 * of the storage, id of the repository, 'repack' or 'collect', the point.
 */
import { connectPostgres } from '#shared/database/postgres.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createGitStorageOf, postgresParts } from '#shared/git/storage/create-git-storage.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';

const [, , url = '', directory = '', id = '', what = '', point = ''] = process.argv;
const { db } = connectPostgres(url, () => undefined, 5);
const die = (here: string): void => {
  if (here === point) process.kill(process.pid, 'SIGKILL');
};
const { refs, catalog } = postgresParts(db);
const files = createDirectoryPackFiles(directory);
const storage = createGitStorageOf(
  { directory, log: createLog('warn', (line) => process.stderr.write(`${line}\n`)) },
  {
    refs,
    files: {
      ...files,
      async keepPack(...pack) {
        await files.keepPack(...pack);
        die('pack kept');
      },
    },
    catalog: {
      ...catalog,
      async retirePacks(...packs) {
        await catalog.retirePacks(...packs);
        die('packs retired');
      },
      async hold(...held) {
        const result = await catalog.hold(...held);
        die('committed');
        return result;
      },
    },
  },
);
const repositoryId = id as RepositoryId;
const running = new AbortController().signal;
if (what === 'repack') await storage.maintenance.repack(repositoryId, running);
else await storage.maintenance.collectGarbage(repositoryId, async () => [], running);
