import { join } from 'node:path';
import type { PackCache, PackDigests } from '#shared/git/packs/files/pack-cache.ts';
import { type PackFiles, type PackPaths, PackStorageError } from '#shared/git/packs/files/pack-files.ts';
import { isUuid, type RepositoryId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { Bucket } from '#shared/object-store/bucket.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';

const extensions = ['pack', 'links', 'idx'] as const;
/** How many objects of a repository are deleted at once. */
const requestsAtOnce = 8;

/**
 * Packs as objects `<repository_id>/<pack_id>.pack`, `.idx` and `.links`, read through a cache on local disk. An object is
 * stored as a whole or not at all, and the index is stored last: where there is an index, there is a pack.
 */
export function createObjectStorePackFiles({ bucket, cache, log }: { bucket: Bucket; cache: PackCache; log: Log }): PackFiles {
  const keyOf = (repositoryId: RepositoryId, packId: string): string => `${repositoryId}/${packId}`;
  const upload = async (key: string, { packPath, indexPath, linksPath }: PackPaths): Promise<PackDigests> => {
    // Uploaded even when it exists: an abandoned pack becomes a new one, which no sweep takes for an old one.
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
    async storePack(repositoryId, packId, files) {
      const key = keyOf(repositoryId, packId);
      // A sweep may have deleted it as abandoned since it was prepared.
      if (await bucket.hasObject(`${key}.idx`)) return;
      await upload(key, files);
    },
    async locatePack(repositoryId, packId) {
      const key = keyOf(repositoryId, packId);
      const { paths, release } = await cache.pin(key, (directory) => download(key, directory));
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
      const deleteNext = async (): Promise<void> => {
        for (const key of left) await bucket.deleteObject(key);
      };
      await Promise.all(Array.from({ length: requestsAtOnce }, deleteNext));
      for (const key of new Set(objects.map((object) => object.key.replace(/\.[a-z]+$/, '')))) await cache.forget(key);
      return objects.length > 0;
    },
    sweep: (olderThanSeconds) => bucket.abortUploads(olderThanSeconds),
  };
  return translateErrors(files, log);
}

/** Callers handle a PackStorageError, whatever the driver. */
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
    storePack: translated(files.storePack),
    locatePack: translated(files.locatePack),
    listRepositories: translated(files.listRepositories),
    listPacks: translated(files.listPacks),
    deletePack: translated(files.deletePack),
    deletePacks: translated(files.deletePacks),
    sweep: translated(files.sweep),
  };
}
