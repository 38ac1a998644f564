import type { Context } from '#shared/core/context.ts';
import { readSourceAccess } from '#shared/core/repositories/source-keys.ts';
import { counted } from '#shared/counted.ts';
import { AppError } from '#shared/errors.ts';
import type { GitReader } from '#shared/git/git-storage.ts';
import type { RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { LineSink, SourceStream } from '#shared/platform/builds.ts';
import type { LargeFile } from '#shared/sources/source-hosts.ts';

/** The contents of files that a commit has as pointers of Git LFS. */
export interface LargeFiles {
  /** The content for the pointer at a path; undefined where there is no pointer. */
  read(path: string): SourceStream | undefined;
  /** Deletes the local copies. */
  discard(): Promise<void>;
}

type Tree = ReturnType<GitReader['readTree']>;

export interface LargeFilesFetch {
  /** The repository whose app has what the source is read with. */
  repositoryId: RepositoryId;
  /** Address of the repository that the tree is from; undefined: it was pushed here. */
  url: string | undefined;
  /** Whether the build uses the file at a path. */
  isNeeded?: (path: string) => boolean;
  /** Writes a line of the build's log. */
  log: LineSink;
  signal: AbortSignal;
}

const none: LargeFiles = { read: () => undefined, discard: async () => undefined };

/**
 * Fetches the contents of the pointers in a tree whose `.gitattributes` use Git LFS, from the host that the tree is from.
 * @throws AppError `validation_failed`, for the owner of the app, that names the file
 */
export async function fetchLargeFiles(context: Context, readTree: () => Tree, fetch: LargeFilesFetch): Promise<LargeFiles> {
  const { repositoryId, url, isNeeded = () => true, log, signal } = fetch;
  const settings = await readSettings(readTree());
  if (!settings.usesLfs || (url ?? settings.endpoint) === undefined) return none;
  const files = await findPointers(readTree(), isNeeded);
  if (files.length === 0) return none;
  requireFit(files);
  log(`-----> Fetching ${counted(files.length, 'large file')} (Git LFS)`);
  const source = url ?? settings.endpoint ?? '';
  const access = await readSourceAccess(context, repositoryId, source);
  const fetched = await context.sources.fetchLargeFiles({ url: source, endpoint: settings.endpoint, files, signal, ...access });
  log(`       ${(fetched.bytes / 1024 / 1024).toFixed(1)} MiB`);
  const oids = new Map(files.map(({ path, oid }) => [path, oid]));
  return {
    read(path) {
      const oid = oids.get(path);
      return oid === undefined ? undefined : fetched.read(oid);
    },
    discard: () => fetched.discard(),
  };
}

/** Whether an attribute of the tree names Git LFS, and which server its `.lfsconfig` names. */
async function readSettings(tree: Tree): Promise<{ usesLfs: boolean; endpoint: string | undefined }> {
  let usesLfs = false;
  let endpoint: string | undefined;
  for await (const { path, kind, read } of tree) {
    if (kind === 'symlink' || kind === 'submodule') continue;
    if (path === '.lfsconfig') endpoint = readLfsUrl(decode(await read()));
    else if (!usesLfs && /(^|\/)\.gitattributes$/.test(path)) usesLfs = /^[^#\n]*\sfilter=lfs(\s|$)/m.test(decode(await read()));
  }
  return { usesLfs, endpoint };
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** `lfs.url` of a file in the format of git-config(1). */
export function readLfsUrl(text: string): string | undefined {
  let isInSection = false;
  let url: string | undefined;
  for (const line of text.split('\n')) {
    const section = /^\s*\[([^\]]*)\]/.exec(line)?.[1];
    if (section !== undefined) isInSection = section.trim().toLowerCase() === 'lfs';
    const value = /^\s*(?:\[[^\]]*\])?\s*url\s*=\s*"?([^\s"#;]+)"?\s*(?:[#;].*)?$/i.exec(line)?.[1];
    if (isInSection && value !== undefined) url = value;
  }
  return url;
}

const longestPointer = 1024;
const pointerPattern =
  /^version https:\/\/(?:git-lfs|hawser)\.github\.com\/spec\/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n?$/;

async function findPointers(tree: Tree, isNeeded: (path: string) => boolean): Promise<LargeFile[]> {
  const files: LargeFile[] = [];
  for await (const { path, kind, read } of tree) {
    if ((kind !== 'file' && kind !== 'executable') || !isNeeded(path)) continue;
    const content = await read();
    if (content.length > longestPointer) continue;
    const [, oid, size] = pointerPattern.exec(decode(content)) ?? [];
    if (oid !== undefined) files.push({ path, oid, size: Number(size) });
  }
  return files;
}

/** @throws AppError validation_failed */
function requireFit(files: readonly LargeFile[]): void {
  const { count, bytes } = limits.largeFiles;
  const total = [...new Map(files.map((file) => [file.oid, file.size])).values()].reduce((sum, size) => sum + size, 0);
  const mebibytes = (value: number): number => Math.ceil(value / 1024 / 1024);
  const largest = files.reduce((one, other) => (other.size > one.size ? other : one));
  if (total > bytes)
    throw new AppError(
      'validation_failed',
      `The large files (Git LFS) are together ${mebibytes(total)} MiB, and a build may have ${mebibytes(bytes)} MiB. The largest is ${largest.path}. Fetch such files when the app starts.`,
    );
  if (files.length > count)
    throw new AppError('validation_failed', `There are ${files.length} large files (Git LFS), and a build may have ${count}.`);
}
