import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Bucket } from '#shared/object-store/bucket.ts';

/**
 * Finds out at a start what would otherwise fail in somebody's push: writes, lists, reads and deletes one small object.
 *
 * @param directory for two small files, gone again afterwards
 * @throws ObjectStoreError naming what the store said
 */
export async function checkBucket(bucket: Bucket, directory: string): Promise<void> {
  const name = `start-check-${crypto.randomUUID()}`;
  const [written, read] = [join(directory, name), join(directory, `${name}.read`)];
  try {
    await writeFile(written, 'A platform has checked that it can write here.\n');
    await bucket.putFile(name, written);
    await Array.fromAsync(bucket.listObjects(name));
    await bucket.getFile(name, read);
    await bucket.deleteObject(name);
  } finally {
    await rm(written, { force: true });
    await rm(read, { force: true });
  }
}
