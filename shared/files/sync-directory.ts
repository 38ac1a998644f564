import { open } from 'node:fs/promises';

/** Makes names durable: without it a rename may be forgotten in a power cut, though the file's content is safe. */
export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
