import { chmod, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** Flips a bit in the middle of each pack in a directory, like a failing disk. */
export async function damagePacks(directory: string): Promise<void> {
  for (const name of (await readdir(directory)).filter((file) => file.endsWith('.pack'))) {
    const path = join(directory, name);
    const bytes = await readFile(path);
    const middle = Math.floor(bytes.length / 2);
    bytes[middle] = (bytes[middle] ?? 0) ^ 1;
    await chmod(path, 0o644);
    await writeFile(path, bytes);
  }
}
