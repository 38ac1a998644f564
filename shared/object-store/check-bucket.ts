import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bucket } from '#shared/object-store/bucket.ts';

/**
 * Checks at the start of the platform that the bucket works, before a push needs it: writes, lists, reads and deletes one small
 * object.
 *
 * @param directory for two small temporary files
 * @throws ObjectStoreError with the store's error
 */
export async function checkBucket(bucket: Bucket, directory: string): Promise<void> {
  const name = `start-check-${crypto.randomUUID()}`;
  const [written, read] = [join(directory, name), join(directory, `${name}.read`)];
  try {
    await writeFile(written, 'The platform checks that it can write here.\n');
    await bucket.putFile(name, written);
    await Array.fromAsync(bucket.listObjects(name));
    await bucket.getFile(name, read);
    await bucket.deleteObject(name);
  } finally {
    await rm(written, { force: true });
    await rm(read, { force: true });
  }
}
