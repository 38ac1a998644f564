import { lchown, mkdir, open, symlink } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path/posix';
import type { SourceEntry } from '#shared/platform/platform.ts';
import { BuildFailure } from './builders/builder.ts';

export interface WrittenSource {
  readonly files: number;
  readonly bytes: number;
  /** Symlinks that were left out because they lead out of the tree. */
  readonly leftOut: readonly string[];
}

export interface SourceWriting {
  /** Whom the files are given to; undefined: they stay this process's. */
  readonly owner: number | undefined;
  readonly longestBytes: number;
  readonly signal: AbortSignal;
}

/**
 * Writes a source to an empty directory. Symlinks come last, when nothing is written any more: no file can go through one.
 * @throws BuildFailure for a source that no directory can hold, or that is too large
 */
export async function writeSource(
  root: string,
  source: AsyncIterable<SourceEntry>,
  writing: SourceWriting,
): Promise<WrittenSource> {
  const links: { path: string; target: string }[] = [];
  const leftOut: string[] = [];
  const made = new Set(['.']);
  let [files, bytes] = [0, 0];
  const take = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > writing.longestBytes) {
      throw new BuildFailure(
        `The source is larger than ${Math.round(writing.longestBytes / 1024 / 1024)} MiB. Keep large files out of the repository.`,
      );
    }
  };
  const give = async (path: string): Promise<void> => {
    if (writing.owner !== undefined) await lchown(path, writing.owner, writing.owner);
  };
  const makeDirectory = async (path: string): Promise<void> => {
    if (made.has(path)) return;
    await makeDirectory(dirname(path));
    await mkdir(`${root}/${path}`).catch(refuseClash(path));
    await give(`${root}/${path}`);
    made.add(path);
  };

  for await (const entry of source) {
    writing.signal.throwIfAborted();
    checkPath(entry.path);
    if (entry.kind === 'symlink') {
      const target = await readTarget(entry.content);
      if (staysInside(entry.path, target)) links.push({ path: entry.path, target });
      else leftOut.push(entry.path);
      continue;
    }
    await makeDirectory(dirname(entry.path));
    const file = `${root}/${entry.path}`;
    const handle = await open(file, 'wx', entry.kind === 'executable' ? 0o755 : 0o644).catch(refuseClash(entry.path));
    try {
      for await (const chunk of entry.content instanceof Uint8Array ? [entry.content] : entry.content) {
        take(chunk);
        await handle.writeFile(chunk);
      }
    } finally {
      await handle.close();
    }
    await give(file);
    files += 1;
  }
  for (const { path, target } of links) {
    await makeDirectory(dirname(path));
    await symlink(target, `${root}/${path}`).catch(refuseClash(path));
    await give(`${root}/${path}`);
  }
  return { files, bytes, leftOut };
}

/** What git and tarball readers promise; checked once more where it would do harm. */
function checkPath(path: string): void {
  const parts = path.split('/');
  if (path === '' || path.includes('\0') || parts.some((part) => part === '' || part === '.' || part === '..')) {
    throw new BuildFailure(`The source has a file that cannot be written: ${JSON.stringify(path)}`);
  }
}

function staysInside(path: string, target: string): boolean {
  if (target === '' || target.startsWith('/') || target.includes('\0')) return false;
  const led = normalize(join(dirname(path), target));
  return led !== '..' && !led.startsWith('../');
}

async function readTarget(content: SourceEntry['content']): Promise<string> {
  if (content instanceof Uint8Array) return new TextDecoder().decode(content);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function refuseClash(path: string): (error: NodeJS.ErrnoException) => never {
  return (error) => {
    const clashes = error.code === 'EEXIST' || error.code === 'ENOTDIR' || error.code === 'ELOOP';
    if (clashes) throw new BuildFailure(`The source has two entries where there can be one: ${JSON.stringify(path)}`);
    if (error.code === 'ENAMETOOLONG')
      throw new BuildFailure(`The source has a name that is too long: ${JSON.stringify(path.slice(0, 100))}…`);
    throw error;
  };
}
