import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, realpath } from 'node:fs/promises';

/**
 * Looking at files that tenants wrote, from outside the sandbox: a symlink that leads out of the tree is as good as
 * absent. What is read is inside also if the tenant's code changes the tree meanwhile.
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

/** The files below a directory of the host. Links that lead out of it are not followed. */
export function openSourceTree(root: string): SourceTree {
  const inside = async (path: string): Promise<string | undefined> => {
    const [base, full] = await Promise.all([realpath(root), realpath(`${root}/${path}`).catch(() => undefined)]);
    return full === base || full?.startsWith(`${base}/`) === true ? full : undefined;
  };
  const readBytes = async (path: string, longest: number): Promise<Uint8Array | undefined> => {
    const file = await inside(path);
    if (file === undefined) return undefined;
    // Not blocking: opening a pipe would wait for who writes to it.
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => undefined);
    if (handle === undefined) return undefined;
    await using _ = handle;
    // Where the open file is now, whatever its path led to.
    const opened = await readlink(`/proc/self/fd/${handle.fd}`);
    if (!(await handle.stat()).isFile() || !opened.startsWith(`${await realpath(root)}/`)) return undefined;
    const buffer = new Uint8Array(longest);
    const { bytesRead } = await handle.read(buffer, 0, longest, 0);
    return buffer.subarray(0, bytesRead);
  };
  return {
    readBytes,
    async hasFile(path) {
      const file = await inside(path);
      return file !== undefined && (await lstat(file).catch(() => undefined))?.isFile() === true;
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

/** A directory of a tree as one of its own. */
export function openSubtree(tree: SourceTree, directory: string): SourceTree {
  const join = (path: string): string => (path === '' ? directory : `${directory}/${path}`);
  return {
    hasFile: (path) => tree.hasFile(join(path)),
    readText: (path) => tree.readText(join(path)),
    readBytes: (path, longest) => tree.readBytes(join(path), longest),
    list: (path) => tree.list(join(path)),
  };
}
