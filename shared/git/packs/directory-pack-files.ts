import { access, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { PackFiles } from '#shared/git/packs/pack-files.ts';
import { isUuid, type RepositoryId } from '#shared/ids.ts';

/** @param directory holds `<repository_id>/packs/<pack_id>.pack`, `.idx` and `.links` */
export function createDirectoryPackFiles(directory: string): PackFiles {
  const packsOf = (repositoryId: RepositoryId): string => join(directory, repositoryId, 'packs');
  const paths = (repositoryId: RepositoryId, packId: string) => ({
    pack: join(packsOf(repositoryId), `${packId}.pack`),
    index: join(packsOf(repositoryId), `${packId}.idx`),
    links: join(packsOf(repositoryId), `${packId}.links`),
  });
  return {
    async locatePack(repositoryId, packId) {
      return paths(repositoryId, packId);
    },
    async listRepositories() {
      return (await readdir(directory).catch(ifMissing([]))).filter(isUuid) as RepositoryId[];
    },
    async listPacks(repositoryId, olderThanSeconds) {
      const names = await readdir(packsOf(repositoryId)).catch(ifMissing([]));
      const ids = names.filter((name) => name.endsWith('.idx')).map((name) => name.slice(0, -'.idx'.length));
      const times = await Promise.all(ids.map(async (id) => (await stat(paths(repositoryId, id).index)).mtimeMs));
      return ids.filter((_, i) => Date.now() - (times[i] ?? 0) >= olderThanSeconds * 1000);
    },
    async keepPack(repositoryId, packId, files) {
      const target = paths(repositoryId, packId);
      if ((await mkdir(packsOf(repositoryId), { recursive: true })) !== undefined) {
        await syncDirectory(join(directory, repositoryId));
        await syncDirectory(directory);
      }
      // The index last: where there is an index there is a pack.
      await rename(files.packPath, target.pack).catch(ifMissing(undefined));
      await rename(files.linksPath, target.links).catch(ifMissing(undefined));
      await rename(files.indexPath, target.index).catch(ifMissing(undefined));
      await syncDirectory(packsOf(repositoryId));
      await access(target.index);
    },
    async deletePack(repositoryId, packId) {
      const { pack, index, links } = paths(repositoryId, packId);
      const existed = await access(index).then(() => true, ifMissing(false));
      for (const path of [index, links, pack]) await rm(path, { force: true });
      return existed;
    },
    async deletePacks(repositoryId) {
      const existed = await access(packsOf(repositoryId)).then(() => true, ifMissing(false));
      await rm(packsOf(repositoryId), { recursive: true, force: true });
      return existed;
    },
  };
}

/** Makes names durable: without it a rename may be forgotten in a power cut, though the file's content is safe. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

export function ifMissing<T>(value: T): (error: unknown) => T {
  return (error) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return value;
    throw error;
  };
}
