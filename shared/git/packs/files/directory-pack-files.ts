import { access, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { ifMissing } from '#shared/files/if-missing.ts';
import { syncDirectory } from '#shared/files/sync-directory.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import { isUuid, type RepositoryId } from '#shared/ids.ts';

/**
 * Packs in a directory that all processes that serve the same repositories share.
 *
 * @param directory holds `<repository_id>/packs/<pack_id>.pack`, `.idx` and `.links`
 */
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
      const before = Date.now() - olderThanSeconds * 1000;
      // After a crash a pack may be without its index, so every file counts.
      const isOld = new Map<string, boolean>();
      for (const name of names) {
        const changedAt = (await stat(join(packsOf(repositoryId), name)).catch(ifMissing(undefined)))?.mtimeMs;
        const packId = name.slice(0, name.lastIndexOf('.'));
        // The clock has no fractions of a millisecond, and file systems have.
        if (changedAt !== undefined) isOld.set(packId, Math.floor(changedAt) <= before && isOld.get(packId) !== false);
      }
      return [...isOld].flatMap(([packId, old]) => (old ? [packId] : []));
    },
    preparePack: async () => undefined,
    async storePack(repositoryId, packId, files) {
      const target = paths(repositoryId, packId);
      if ((await mkdir(packsOf(repositoryId), { recursive: true })) !== undefined) {
        await syncDirectory(join(directory, repositoryId));
        await syncDirectory(directory);
      }
      // The index is moved last: where there is an index, there is a pack.
      await rename(files.packPath, target.pack).catch(ifMissing(undefined));
      await rename(files.linksPath, target.links).catch(ifMissing(undefined));
      await rename(files.indexPath, target.index).catch(ifMissing(undefined));
      await syncDirectory(packsOf(repositoryId));
      await access(target.index);
    },
    async deletePack(repositoryId, packId) {
      const { pack, index, links } = paths(repositoryId, packId);
      let existed = false;
      for (const path of [index, links, pack]) existed = (await rm(path).then(() => true, ifMissing(false))) || existed;
      return existed;
    },
    async deletePacks(repositoryId) {
      const existed = await access(packsOf(repositoryId)).then(() => true, ifMissing(false));
      await rm(packsOf(repositoryId), { recursive: true, force: true });
      // Fails, as it should, when something else is in it.
      await rmdir(join(directory, repositoryId)).catch(() => undefined);
      return existed;
    },
    sweep: async () => 0,
  };
}
