import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { archiveFault } from '#shared/sources/archive-fault.ts';
import { type GuardedRequestOptions, type GuardedResponse, guardedRequest } from '#shared/sources/guarded-request.ts';
import { type ArchiveLimits, openArchive } from '#shared/sources/source-archive.ts';
import type { ArchiveRequest, FetchedArchive } from '#shared/sources/source-hosts.ts';
import { explainFullDisk, openUnlinkedFile, readRange } from '#shared/sources/unlinked-file.ts';

/** How archives are fetched. */
export interface ArchiveFetchOptions extends GuardedRequestOptions {
  /** Directory for an archive while it is in use. */
  directory: string;
  limits: ArchiveLimits & { packedBytes: number };
}

const redirects = 5;
const headers = { 'user-agent': 'paas', accept: '*/*', 'accept-encoding': 'identity' };
const hint = ': it does not exist, is private, or its signed URL has expired. Use a URL that can be read without credentials';

/** Formats that people send by mistake, by their first bytes. */
const otherFormats: readonly (readonly [begin: string, name: string])[] = [
  ['PK', 'a zip file'],
  ['\xfd7zXZ', 'packed with xz'],
  ['\x28\xb5\x2f\xfd', 'packed with zstd'],
  ['BZh', 'packed with bzip2'],
  ['<', 'a web page'],
];

/** Downloads an archive and checks all of it. @throws AppError validation_failed */
export async function fetchArchive(asked: ArchiveRequest, options: ArchiveFetchOptions): Promise<FetchedArchive> {
  const { packedBytes } = options.limits;
  const { signal } = asked;
  const file = await openUnlinkedFile(options.directory);
  try {
    const answer = await guardedRequest(new URL(asked.url), { method: 'GET', headers, redirects, hint, signal }, options);
    const { bytes, sha256 } = await store(answer, file, packedBytes);
    if (asked.sha256 !== undefined && asked.sha256 !== sha256)
      throw archiveFault(`has the wrong checksum: its SHA-256 is ${sha256}, expected ${asked.sha256}`);
    await requireGzip(file);
    const archive = await openArchive(() => readRange(file), options.limits);
    return { ...archive, bytes, sha256, discard: () => file.close() };
  } catch (error) {
    await file.close();
    throw explainFullDisk(error);
  }
}

async function store(
  { headers, body }: GuardedResponse,
  file: FileHandle,
  longest: number,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  const stated = Number(headers['content-length'] ?? 0);
  let bytes = 0;
  // Stops at the first chunk if the stated size is too large, which closes the connection.
  for await (const chunk of body) {
    bytes += chunk.length;
    if (Math.max(bytes, stated) > longest)
      throw archiveFault(`is larger than ${Math.round(longest / 1024 / 1024)} MiB. Keep large files out of it`);
    hash.update(chunk);
    await file.writeFile(chunk);
  }
  return { bytes, sha256: hash.digest('hex') };
}

async function requireGzip(file: FileHandle): Promise<void> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0);
  if (bytesRead === 0) throw archiveFault('is empty');
  if (buffer[0] === 0x1f && buffer[1] === 0x8b) return;
  const start = buffer.toString('latin1', 0, bytesRead);
  const [, other] = otherFormats.find(([begin]) => start.startsWith(begin)) ?? [];
  const what = other === undefined ? 'is not packed with gzip' : `is ${other}`;
  throw archiveFault(`${what}. Only tar.gz is supported: \`tar -czf source.tar.gz .\`, or \`git archive -o source.tar.gz HEAD\``);
}
