import { lchown, open, symlink } from 'node:fs/promises';
import { dirname, join, normalize } from 'node:path/posix';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import type { SourceEntry } from '#shared/platform/builds.ts';
import { readAtMost } from '#shared/read-at-most.ts';
import { writeInThread } from './file-writer.ts';
import type { FileBatch } from './write-files.ts';

const batchFiles = 256;
const batchBytes = 2 * 1024 * 1024;
/** Bytes. */
const longestTarget = 4095;

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
  const writer = new BatchWriter(root, writing.owner);
  let [files, bytes] = [0, 0];
  const take = (chunk: Uint8Array): void => {
    bytes += chunk.length;
    if (bytes > writing.longestBytes) {
      throw new BuildFailure(
        `The source is larger than ${Math.round(writing.longestBytes / 1024 / 1024)} MiB. Keep large files out of the repository.`,
      );
    }
  };

  try {
    for await (const entry of source) {
      writing.signal.throwIfAborted();
      checkPath(entry.path);
      if (entry.kind === 'symlink') {
        const target = await readTarget(entry.path, entry.content);
        if (staysInside(entry.path, target)) links.push({ path: entry.path, target });
        else leftOut.push(entry.path);
        continue;
      }
      const mode = entry.kind === 'executable' ? 0o755 : 0o644;
      if (entry.content instanceof Uint8Array) {
        take(entry.content);
        await writer.addFile(entry.path, mode, entry.content);
      } else {
        await writeStream(writer, entry.path, mode, entry.content, take);
      }
      files += 1;
    }
    for (const { path } of links) writer.addParents(path);
    await writer.drain();
  } catch (error) {
    // The caller may remove the directory once this rejects.
    await writer.settle();
    throw error;
  }
  for (const { path, target } of links) {
    await symlink(target, `${root}/${path}`).catch(refuseClash(path));
    await writer.give(path);
  }
  return { files, bytes, leftOut };
}

async function writeStream(
  writer: BatchWriter,
  path: string,
  mode: number,
  content: AsyncIterable<Uint8Array>,
  take: (chunk: Uint8Array) => void,
): Promise<void> {
  writer.addParents(path);
  await writer.drain();
  await using file = await open(`${writer.root}/${path}`, 'wx', mode).catch(refuseClash(path));
  for await (const chunk of content) {
    take(chunk);
    await file.writeFile(chunk);
  }
  await writer.give(path);
}

/** Gathers small files and has them written in batches, one while the next is gathered. */
class BatchWriter {
  readonly root: string;
  readonly #owner: number | undefined;
  readonly #made = new Set(['.']);
  #batch: FileBatch;
  #bytes = 0;
  #underWay: Promise<void> | undefined;

  constructor(root: string, owner: number | undefined) {
    this.root = root;
    this.#owner = owner;
    this.#batch = this.#empty();
  }

  /** Resolves when more may be added. */
  async addFile(path: string, mode: number, content: Uint8Array): Promise<void> {
    this.addParents(path);
    this.#batch.files.push({ path, mode, content });
    this.#bytes += content.length;
    if (this.#batch.files.length >= batchFiles || this.#bytes >= batchBytes) await this.#flush();
  }

  addParents(path: string): void {
    const parent = dirname(path);
    if (this.#made.has(parent)) return;
    this.addParents(parent);
    this.#made.add(parent);
    this.#batch.directories.push(parent);
  }

  /** Resolves when all that was added is written. */
  async drain(): Promise<void> {
    await this.#flush();
    await this.#underWay;
  }

  /** Resolves when nothing is being written any more, whatever came of it. */
  async settle(): Promise<void> {
    await this.#underWay?.catch(() => undefined);
  }

  /** To the owner of the others. */
  async give(path: string): Promise<void> {
    if (this.#owner !== undefined) await lchown(`${this.root}/${path}`, this.#owner, this.#owner);
  }

  async #flush(): Promise<void> {
    await this.#underWay;
    if (this.#batch.directories.length + this.#batch.files.length === 0) return;
    const written = writeInThread(this.#batch).then((fault) => {
      if (fault === undefined) return;
      const { path, code, message } = fault;
      refuseClash(path)(Object.assign(new Error(message), { code }));
    });
    // The next call of add or drain throws it.
    written.catch(() => undefined);
    this.#underWay = written;
    this.#batch = this.#empty();
    this.#bytes = 0;
  }

  #empty(): FileBatch {
    return { root: this.root, owner: this.#owner, directories: [], files: [] };
  }
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

/** Targets stay in memory until all files are written. */
async function readTarget(path: string, content: SourceEntry['content']): Promise<string> {
  const bytes = await readAtMost(content instanceof Uint8Array ? [content] : content, longestTarget);
  if (bytes === undefined)
    throw new BuildFailure(`The source has a symlink that leads further than any path: ${JSON.stringify(path.slice(0, 100))}`);
  return bytes.toString();
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
