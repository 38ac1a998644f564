import { lstat, open, readdir, realpath } from 'node:fs/promises';

/**
 * Looking at files that tenants wrote, from outside the sandbox: a symlink that leads out of the tree is as good as
 * absent. Only to be used while none of their code runs.
 */
export interface SourceTree {
  /** A regular file, or a symlink to one within the tree. */
  hasFile(path: string): Promise<boolean>;
  /** Undefined when there is none. Longer ones are cut at 1 MiB. */
  readText(path: string): Promise<string | undefined>;
  readBytes(path: string, longest: number): Promise<Uint8Array | undefined>;
  /** Names in a directory, sorted; empty when there is none. */
  list(path: string): Promise<readonly string[]>;
}

const longestText = 1024 * 1024;

export function openSourceTree(root: string): SourceTree {
  const inside = async (path: string): Promise<string | undefined> => {
    const [base, full] = await Promise.all([realpath(root), realpath(`${root}/${path}`).catch(() => undefined)]);
    return full === base || full?.startsWith(`${base}/`) === true ? full : undefined;
  };
  const readBytes = async (path: string, longest: number): Promise<Uint8Array | undefined> => {
    const file = await inside(path);
    if (file === undefined || !(await lstat(file)).isFile()) return undefined;
    await using handle = await open(file);
    const buffer = new Uint8Array(longest);
    const { bytesRead } = await handle.read(buffer, 0, longest, 0);
    return buffer.subarray(0, bytesRead);
  };
  return {
    readBytes,
    async hasFile(path) {
      const file = await inside(path);
      return file !== undefined && (await lstat(file)).isFile();
    },
    async readText(path) {
      const bytes = await readBytes(path, longestText);
      return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
    },
    async list(path) {
      const directory = await inside(path);
      const names = directory === undefined ? [] : await readdir(directory).catch(() => []);
      return names.sort();
    },
  };
}
