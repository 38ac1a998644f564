import { createHash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { AppError } from '#shared/errors.ts';
import { parseGitUrl } from '#shared/sources/git-url.ts';
import { type GuardedRequestOptions, guardedRequest } from '#shared/sources/guarded-request.ts';
import { credentialsFor, missingHint } from '#shared/sources/http-access.ts';
import { askForDownloads, batchSize, type Download, type LargeFileServer } from '#shared/sources/lfs-batch.ts';
import type { FetchedLargeFiles, LargeFilesRequest } from '#shared/sources/source-hosts.ts';
import { authenticateForLfs } from '#shared/sources/ssh-lfs.ts';
import { explainFullDisk, openUnlinkedFile, readRange } from '#shared/sources/unlinked-file.ts';

/** How large files are fetched. */
export interface LargeFileOptions extends GuardedRequestOptions {
  /** Directory for the contents while they are in use. */
  directory: string;
}

const redirects = 3;
const downloadsAtOnce = 4;
const headers = { 'user-agent': 'git-lfs/3 (paas)', accept: '*/*', 'accept-encoding': 'identity' };

/** Downloads the contents of large files, and checks each against its size and SHA-256. @throws AppError validation_failed */
export async function fetchLargeFiles(asked: LargeFilesRequest, options: LargeFileOptions): Promise<FetchedLargeFiles> {
  const { signal } = asked;
  const server = await findServer(asked, options);
  const files = [...new Map(asked.files.map((file) => [file.oid, file])).values()];
  const places = new Map<string, { from: number; size: number }>();
  let bytes = 0;
  for (const { oid, size } of files) {
    places.set(oid, { from: bytes, size });
    bytes += size;
  }
  const stored = await openUnlinkedFile(options.directory);
  try {
    for (let at = 0; at < files.length; at += batchSize) {
      const downloads = await askForDownloads(server, files.slice(at, at + batchSize), signal, options);
      const waiting = downloads.values();
      const work = async (): Promise<void> => {
        for (const each of waiting)
          await download(each, stored, places.get(each.file.oid)?.from ?? 0, { hint: server.hint, signal }, options);
      };
      await Promise.all(Array.from({ length: downloadsAtOnce }, work));
    }
  } catch (error) {
    await stored.close();
    throw explainFullDisk(error);
  }
  return {
    bytes,
    read(oid) {
      const place = places.get(oid);
      if (place === undefined) throw new RangeError(`${oid} was not fetched`);
      return { size: place.size, [Symbol.asyncIterator]: () => readRange(stored, place.from, place.from + place.size) };
    },
    discard: () => stored.close(),
  };
}

/** Where git-lfs would look: at what `.lfsconfig` names, otherwise beside the repository. */
async function findServer(asked: LargeFilesRequest, options: GuardedRequestOptions): Promise<LargeFileServer> {
  const { url, endpoint, token } = asked;
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw fault('The lfs.url in .lfsconfig must be an https address');
  const at = parseGitUrl(url);
  if (endpoint === undefined && at?.scheme === 'ssh') return authenticateForLfs(asked, at, options);
  const hint = missingHint(token);
  const credentials = at?.scheme === 'ssh' ? undefined : credentialsFor(url, token);
  if (endpoint !== undefined) return { endpoint: endpoint.replace(/\/+$/, ''), credentials, hint };
  const base = url.replace(/\/+$/, '');
  return { endpoint: `${base}${base.endsWith('.git') ? '' : '.git'}/info/lfs`, credentials, hint };
}

async function download(
  { file, url, credentials }: Download,
  stored: FileHandle,
  from: number,
  { hint, signal }: { hint: string; signal: AbortSignal },
  options: GuardedRequestOptions,
): Promise<void> {
  const { path, oid, size } = file;
  const answer = await guardedRequest(url, { method: 'GET', headers, redirects, credentials, hint, signal }, options);
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of answer.body) {
    if (bytes + chunk.length > size) throw fault(`${url.host} sent more than the ${size} bytes of ${path}`);
    await stored.write(chunk, 0, chunk.length, from + bytes);
    hash.update(chunk);
    bytes += chunk.length;
  }
  const found = hash.digest('hex');
  if (bytes !== size || found !== oid)
    throw fault(
      `${url.host} sent another content for ${path} than its Git LFS pointer names: ${bytes} bytes with SHA-256 ${found.slice(0, 12)}, expected ${size} with ${oid.slice(0, 12)}`,
    );
}

function fault(message: string): AppError {
  return new AppError('validation_failed', `${message}.`);
}
