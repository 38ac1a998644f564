import { open, rename, rm } from 'node:fs/promises';

/**
 * Writes a file so that a reader, or whoever comes after a power cut, finds the old content or the new one and never a
 * part. One writer a file at a time.
 */
export async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  const temporary = `${path}.${process.pid}.new`;
  try {
    const file = await open(temporary, 'w', mode);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}
