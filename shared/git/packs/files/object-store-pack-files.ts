import { join } from 'node:path';
import type { PackCache, PackDigests } from '#shared/git/packs/files/pack-cache.ts';
import { type FinishedPack, type PackFiles, PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { isUuid, type RepositoryId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';

const extensions = ['pack', 'links', 'idx'] as const;
/** Requests for one repository under way at once. */
const requestsAtOnce = 8;

/**
 * Packs as objects `<repository_id>/<pack_id>.pack`, `.idx` and `.links`, read by way of a cache on local disk. An object is
 * there whole or not at all, and the index comes last: where there is an index there is a pack.
 */
export function createObjectStorePackFiles({ bucket, cache, log }: { bucket: Bucket; cache: PackCache; log: Log }): PackFiles {
  const keyOf = (repositoryId: RepositoryId, packId: string): string => `${repositoryId}/${packId}`;
  const upload = async (key: string, { packPath, indexPath, linksPath }: FinishedPack): Promise<PackDigests> => {
    // Written also where it is there already: an abandoned pack becomes a new one, which no sweep takes for old.
    const [pack, links] = await Promise.all([bucket.putFile(`${key}.pack`, packPath), bucket.putFile(`${key}.links`, linksPath)]);
    return { pack, links, idx: await bucket.putFile(`${key}.idx`, indexPath) };
  };
  const download = async (key: string, directory: string): Promise<PackDigests> => {
    const [pack, links, idx] = await Promise.all(
      extensions.map((extension) => bucket.getFile(`${key}.${extension}`, join(directory, extension))),
    );
    if (pack === undefined || links === undefined || idx === undefined) throw new Error(`there is no pack ${key}`);
    return { pack, links, idx };
  };
  const objectsOf = async (repositoryId: RepositoryId): Promise<{ key: string; ageSeconds: number }[]> =>
    await Array.fromAsync(bucket.listObjects(`${repositoryId}/`));

  const files: PackFiles = {
    async preparePack(repositoryId, packId, files) {
      const key = keyOf(repositoryId, packId);
      await cache.add(key, files, await upload(key, files));
    },
    async keepPack(repositoryId, packId, files) {
      const key = keyOf(repositoryId, packId);
      // A sweep may have taken it for abandoned since it was prepared.
      if (await bucket.hasObject(`${key}.idx`)) return;
      await upload(key, files);
    },
    async locatePack(repositoryId, packId) {
      const key = keyOf(repositoryId, packId);
      const { paths, release } = await cache.hold(key, (directory) => download(key, directory));
      return { pack: paths.packPath, index: paths.indexPath, links: paths.linksPath, release };
    },
    async listRepositories() {
      return (await Array.fromAsync(bucket.listFolders(''))).filter(isUuid) as RepositoryId[];
    },
    async listPacks(repositoryId, olderThanSeconds) {
      const isOld = new Map<string, boolean>();
      for (const { key, ageSeconds } of await objectsOf(repositoryId)) {
        const packId = key.slice(repositoryId.length + 1, key.lastIndexOf('.'));
        isOld.set(packId, ageSeconds >= olderThanSeconds && isOld.get(packId) !== false);
      }
      return [...isOld].flatMap(([packId, old]) => (old ? [packId] : []));
    },
    async deletePack(repositoryId, packId) {
      const key = keyOf(repositoryId, packId);
      const found = await Promise.all(extensions.map((extension) => bucket.hasObject(`${key}.${extension}`)));
      for (const extension of extensions.toReversed()) await bucket.deleteObject(`${key}.${extension}`);
      await cache.forget(key);
      return found.includes(true);
    },
    async deletePacks(repositoryId) {
      const objects = await objectsOf(repositoryId);
      const left = objects.map(({ key }) => key).values();
      const deleter = async (): Promise<void> => {
        for (const key of left) await bucket.deleteObject(key);
      };
      await Promise.all(Array.from({ length: requestsAtOnce }, deleter));
      for (const key of new Set(objects.map((object) => object.key.replace(/\.[a-z]+$/, '')))) await cache.forget(key);
      return objects.length > 0;
    },
    sweep: (olderThanSeconds) => bucket.abortUploads(olderThanSeconds),
  };
  return translateErrors(files, log);
}

/** Callers know of packs, not of what keeps them. */
function translateErrors(files: PackFiles, log: Log): PackFiles {
  const translated =
    <Args extends unknown[], Result>(method: (...args: Args) => Promise<Result>) =>
    async (...args: Args): Promise<Result> => {
      try {
        return await method(...args);
      } catch (error) {
        if (!(error instanceof ObjectStoreError)) throw error;
        log.error('The object store failed.', { error });
        throw new PackStorageError(error);
      }
    };
  return {
    preparePack: translated(files.preparePack),
    keepPack: translated(files.keepPack),
    locatePack: translated(files.locatePack),
    listRepositories: translated(files.listRepositories),
    listPacks: translated(files.listPacks),
    deletePack: translated(files.deletePack),
    deletePacks: translated(files.deletePacks),
    sweep: translated(files.sweep),
  };
}
