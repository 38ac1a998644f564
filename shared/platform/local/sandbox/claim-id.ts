import { readFile, writeFile } from 'node:fs/promises';

/**
 * Claims what the file stands for, such as a uid, unless it has an owner already.
 * @returns the owner of the file now
 */
export async function claimId(file: string, owner: string): Promise<string> {
  try {
    await writeFile(file, owner, { flag: 'wx', flush: true });
    return owner;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const present = await readFile(file, 'utf8');
    if (present !== '') return present;
    // The process that created it died before it wrote the owner. No code has run under this id.
    await writeFile(file, owner, { flush: true });
    return owner;
  }
}
