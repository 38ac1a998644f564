import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { StartError } from '#deploy/host/start-error.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { type FileLock, tryFileLock } from '#shared/files/file-lock.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { createDirectoryPackFiles } from '#shared/git/packs/files/directory-pack-files.ts';
import { createObjectStorePackFiles } from '#shared/git/packs/files/object-store-pack-files.ts';
import { PackCache } from '#shared/git/packs/files/pack-cache.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import { checkBucket } from '#shared/object-store/check-bucket.ts';
import { ObjectStoreError } from '#shared/object-store/object-store-error.ts';
import { createS3Bucket } from '#shared/object-store/s3-bucket.ts';
import type { S3Patience } from '#shared/object-store/s3-requests.ts';
import type { ObjectStoreSettings } from '#shared/settings/settings.ts';

export interface PackStorage {
  files: PackFiles;
  close(): Promise<void>;
}

export interface PackStorageOptions extends Pick<StartOptions, 'dataDir' | 'log' | 'report'> {
  /** Undefined: packs are kept in the data directory. */
  objectStore: ObjectStoreSettings | undefined;
  /** Another process moves the packs of the directory to the store, and may have a cache of its own there. */
  isGuest?: boolean;
}

/** A start gives up sooner than a push. */
const startPatience: S3Patience = { connectMilliseconds: 5000, idleMilliseconds: 10_000, attempts: 2, backoffMilliseconds: 500 };

/**
 * Opens the place where packs are kept: the data directory, or the object store that the settings name. Packs that are in the
 * directory move to the store at its first start. A later start without the store, or with another one, is refused: it would not
 * find the packs.
 * @throws StartError when the store cannot be used
 */
export async function openPackStorage(options: PackStorageOptions): Promise<PackStorage> {
  const { objectStore, dataDir, log, report, isGuest = false } = options;
  const inDirectory = createDirectoryPackFiles(join(dataDir, 'git'));
  const record = join(dataDir, 'object-store');
  const used = (await readFile(record, 'utf8').catch(ifMissing(''))).trim();
  const address = objectStore === undefined ? '' : `${objectStore.bucketUrl}/${objectStore.prefix}`;
  if (used !== '' && used !== address) {
    throw new StartError(
      `PAAS_OBJECT_STORE_URL: the packs of this platform are in ${used}. Set that; or copy all objects to the new place, and write its address (with a slash at the end) to ${record}.`,
    );
  }
  if (objectStore === undefined) return { files: inDirectory, close: async () => undefined };

  await checkObjectStore(objectStore, dataDir);
  const bucket = createS3Bucket(objectStore);
  const ownCache = isGuest ? claimCache(dataDir) : undefined;
  const close = async (): Promise<void> => {
    await bucket.close();
    ownCache?.lock.release();
  };
  try {
    const directory = ownCache?.directory ?? join(dataDir, 'pack-cache');
    const cache = new PackCache({ directory, bytes: objectStore.cacheBytes, log });
    const files = createObjectStorePackFiles({ bucket, cache, log });
    await writeFile(record, `${address}\n`);
    if (!isGuest) await movePacks(inDirectory, files, report);
    return { files, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A cache is used by one process at a time: `pack-cache-<n>`, the first that is free. */
function claimCache(dataDir: string): { directory: string; lock: FileLock } {
  for (let number = 1; ; number += 1) {
    const directory = join(dataDir, `pack-cache-${number}`);
    const lock = tryFileLock(`${directory}.lock`);
    if (lock !== undefined) return { directory, lock };
  }
}

/** Deletes each pack once it is stored, so that a move that was cut short goes on at the next start. */
async function movePacks(from: PackFiles, to: PackFiles, report: (line: string) => void): Promise<void> {
  for (const repositoryId of await from.listRepositories()) {
    const packIds = await from.listPacks(repositoryId, 0);
    if (packIds.length > 0) report(`-----> Moving ${packIds.length} packs of repository ${repositoryId} to the object store`);
    for (const packId of packIds) {
      const { pack, index, links } = await from.locatePack(repositoryId, packId);
      // In a directory a location is a path.
      const finished = { packPath: pack as string, indexPath: index as string, linksPath: links as string };
      await to.preparePack(repositoryId, packId, finished);
      await from.deletePack(repositoryId, packId);
    }
  }
}

async function checkObjectStore(objectStore: ObjectStoreSettings, dataDir: string): Promise<void> {
  const bucket = createS3Bucket({ ...objectStore, patience: startPatience });
  try {
    await checkBucket(bucket, dataDir);
  } catch (error) {
    if (!(error instanceof ObjectStoreError)) throw error;
    throw new StartError(explain(error, objectStore.bucketUrl), { cause: error });
  } finally {
    await bucket.close();
  }
}

function explain({ code, status, message }: ObjectStoreError, bucketUrl: string): string {
  if (status === undefined) return `PAAS_OBJECT_STORE_URL: no answer from ${bucketUrl} (${code}). Is the object store running?`;
  switch (code) {
    case 'NoSuchBucket':
      return `PAAS_OBJECT_STORE_URL: there is no bucket ${bucketUrl}. Create it, or name another.`;
    case 'InvalidAccessKeyId':
      return `PAAS_OBJECT_STORE_ACCESS_KEY_ID: ${bucketUrl} does not know this key.`;
    case 'SignatureDoesNotMatch':
      return `PAAS_OBJECT_STORE_SECRET_ACCESS_KEY: ${bucketUrl} does not accept it for this PAAS_OBJECT_STORE_ACCESS_KEY_ID.`;
    case 'AuthorizationHeaderMalformed':
    case 'PermanentRedirect':
      return `PAAS_OBJECT_STORE_REGION: ${bucketUrl} is in another region.`;
    case 'RequestTimeTooSkewed':
      return `The clock of this machine is not that of ${bucketUrl}: set it.`;
    default:
      return `PAAS_OBJECT_STORE_URL: ${bucketUrl} cannot be written, listed, read and deleted in: ${message}.`;
  }
}
