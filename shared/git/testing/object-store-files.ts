import { createObjectStorePackFiles } from '#shared/git/packs/files/object-store-pack-files.ts';
import { PackCache } from '#shared/git/packs/files/pack-cache.ts';
import type { PackFiles } from '#shared/git/packs/files/pack-files.ts';
import type { Log } from '#shared/log.ts';
import { createS3Bucket } from '#shared/object-store/s3-bucket.ts';
import { openTestBucket, type TestBucket } from '#shared/object-store/testing/test-bucket.ts';

/** The object store driver for packs, on a bucket for tests. */
export interface ObjectStoreFiles {
  files: PackFiles;
  place: TestBucket;
  close(): Promise<void>;
}

/** Opens the driver with a prefix of its own in the object store of this test run. */
export async function openObjectStorePackFiles(
  cacheDirectory: string,
  log: Log,
  cacheBytes = 64 * 1024 * 1024,
): Promise<ObjectStoreFiles> {
  const place = await openTestBucket();
  const bucket = createS3Bucket({ ...place.account, prefix: place.prefix });
  const files = createObjectStorePackFiles({
    bucket,
    cache: new PackCache({ directory: cacheDirectory, bytes: cacheBytes, log }),
    log,
  });
  return {
    files,
    place,
    async close() {
      for await (const { key } of bucket.listObjects('')) await bucket.deleteObject(key);
      await bucket.close();
      await place.close();
    },
  };
}
