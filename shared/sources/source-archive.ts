import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { isDotGit } from '#shared/git/objects/dot-git-names.ts';
import type { SourceEntry } from '#shared/platform/builds.ts';
import { archiveFault, quoteName } from '#shared/sources/archive-fault.ts';
import { readTar, type TarEntry, type TarLimits } from '#shared/sources/tar-reader.ts';

/** Limits on an archive and its paths. */
export interface ArchiveLimits extends TarLimits {
  /** Length of a path; `depth` is its number of names. */
  pathBytes: number;
  depth: number;
}

/** A checked archive. */
export interface SourceArchive {
  files: number;
  /** The files as a build takes them. May be called several times. */
  read(): AsyncIterable<SourceEntry>;
}

/** Files up to this size are returned in one buffer; larger ones are streamed. */
const pieceBytes = 1024 * 1024;
const longestName = 255;

/**
 * Reads a tar.gz completely once, so that no file of a damaged archive is ever unpacked.
 * @param open returns the compressed bytes from the start, each time it is called
 * @throws AppError validation_failed
 */
export async function openArchive(open: () => AsyncIterable<Uint8Array>, limits: ArchiveLimits): Promise<SourceArchive> {
  let files = 0;
  let top: string | undefined;
  let isFolder = true;
  for await (const { parts, kind } of readEntries(open(), limits)) {
    if (kind !== 'directory') files += 1;
    const [first = ''] = parts;
    // macOS stores attributes of the folder in a file next to it.
    if (first.startsWith('._')) continue;
    top ??= first;
    if (first !== top || (parts.length === 1 && kind !== 'directory')) isFolder = false;
  }
  if (files === 0) throw archiveFault('has no files');
  return { files, read: () => readFiles(open(), limits, isFolder ? top : undefined) };
}

/** @param top the single top-level folder, which is not part of the source */
async function* readFiles(
  packed: AsyncIterable<Uint8Array>,
  limits: ArchiveLimits,
  top: string | undefined,
): AsyncGenerator<SourceEntry> {
  for await (const { parts, kind, size, target, content } of readEntries(packed, limits)) {
    if (kind === 'directory' || (top !== undefined && parts[0] !== top)) continue;
    const path = parts.slice(top === undefined ? 0 : 1).join('/');
    if (kind === 'symlink') yield { path, kind, content: new TextEncoder().encode(target) };
    else yield { path, kind, content: size > pieceBytes ? Object.assign(content, { size }) : await readWhole(content) };
  }
}

async function readWhole(content: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(content));
}

type CheckedEntry = Omit<TarEntry, 'path'> & { parts: readonly string[] };

/** Yields entries with checked relative paths, without `.git`. */
async function* readEntries(packed: AsyncIterable<Uint8Array>, limits: ArchiveLimits): AsyncGenerator<CheckedEntry> {
  for await (const { path, ...entry } of readTar(gunzip(packed), limits)) {
    const parts = checkPath(path, limits);
    if (parts.length === 0 && entry.kind !== 'directory') throw archiveFault(`has a file without a name: ${quoteName(path)}`);
    if (parts.length > 0 && !parts.some(isDotGit)) yield { parts, ...entry };
  }
}

function checkPath(path: string, limits: ArchiveLimits): string[] {
  if (path.startsWith('/')) throw archiveFault(`has an absolute path: ${quoteName(path)}`);
  if (path.includes('\0')) throw archiveFault(`has a path with a NUL byte: ${quoteName(path)}`);
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw archiveFault(`has a path that leads outside of it: ${quoteName(path)}`);
  const isTooLong = parts.some((part) => Buffer.byteLength(part) > longestName) || Buffer.byteLength(path) > limits.pathBytes;
  if (isTooLong || parts.length > limits.depth) throw archiveFault(`has a path that is too long: ${quoteName(path)}`);
  return parts;
}

async function* gunzip(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const packed = Readable.from(bytes);
  const unpacked = createGunzip({ chunkSize: 64 * 1024, rejectGarbageAfterEnd: true });
  packed.on('error', (error) => unpacked.destroy(error));
  packed.pipe(unpacked);
  try {
    yield* unpacked as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw explain(error);
  } finally {
    packed.destroy();
    unpacked.destroy();
  }
}

function explain(error: unknown): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ERR_TRAILING_JUNK_AFTER_STREAM_END') return archiveFault('has data after its end', error);
  return code?.startsWith('Z_') === true ? archiveFault(`is damaged (${message})`, error) : error;
}
