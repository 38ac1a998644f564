import { z } from 'zod';
import { AppError } from '#shared/errors.ts';
import { parseJson } from '#shared/parse-json.ts';
import { readAtMost } from '#shared/read-at-most.ts';
import { type Credentials, type GuardedRequestOptions, guardedRequest } from '#shared/sources/guarded-request.ts';
import type { LargeFile } from '#shared/sources/source-hosts.ts';

/** The batch API of Git LFS: https://github.com/git-lfs/git-lfs/blob/main/docs/api/batch.md */

const mediaType = 'application/vnd.git-lfs+json';
const redirects = 3;
const mostAnswerBytes = 4 * 1024 * 1024;
/** As many as git-lfs asks for at a time. */
export const batchSize = 100;

/** Header fields that may be sent to a server. */
export const headersSchema = z.record(z.string().regex(/^[\w!#$%&'*+.^`|~-]+$/), z.string().regex(/^[\x20-\x7e]*$/));

const answerSchema = z.object({
  transfer: z.string().optional(),
  objects: z.array(
    z.object({
      oid: z.string(),
      actions: z.object({ download: z.object({ href: z.string(), header: headersSchema.nullish() }).optional() }).nullish(),
      error: z.object({ code: z.number(), message: z.string() }).nullish(),
    }),
  ),
});

/** Where an LFS server is, and what its requests carry. */
export interface LargeFileServer {
  /** Without a slash at its end: `https://host/ada/hello.git/info/lfs`. */
  endpoint: string;
  /** Also for downloads from the same origin that come without credentials of their own. */
  credentials: Credentials | undefined;
  /** The likely cause of a 401, 403 or 404, and what to do. Begins with ': '. */
  hint: string;
}

/** Where the content of a large file can be had. */
export interface Download {
  file: LargeFile;
  url: URL;
  credentials: Credentials | undefined;
}

/**
 * Asks where the contents of at most `batchSize` files are.
 * @throws AppError validation_failed that names the first file the server does not have
 */
export async function askForDownloads(
  server: LargeFileServer,
  files: readonly LargeFile[],
  signal: AbortSignal,
  options: GuardedRequestOptions,
): Promise<Download[]> {
  const objects = files.map(({ oid, size }) => ({ oid, size }));
  const body = new TextEncoder().encode(
    JSON.stringify({ operation: 'download', transfers: ['basic'], objects, hash_algo: 'sha256' }),
  );
  const { credentials, hint } = server;
  const url = new URL(`${server.endpoint}/objects/batch`);
  const headers = { 'user-agent': 'git-lfs/3 (paas)', accept: mediaType, 'content-type': mediaType };
  const answer = await guardedRequest(url, { method: 'POST', headers, body, redirects, credentials, hint, signal }, options);
  const bytes = await readAtMost(answer.body, mostAnswerBytes);
  if (bytes === undefined) throw fault(`The answer of the Git LFS server at ${url.host} is too long`);
  const parsed = answerSchema.safeParse(parseJson(bytes.toString()));
  if (!parsed.success || (parsed.data.transfer ?? 'basic') !== 'basic')
    throw fault(`${url.host} has no Git LFS server at ${url.pathname}`);
  const found = new Map(parsed.data.objects.map((object) => [object.oid, object]));
  return files.map((file) => {
    const { actions, error } = found.get(file.oid) ?? {};
    const action = actions?.download;
    if (error || action === undefined) throw missing(file, url.host, error ?? undefined);
    if (!URL.canParse(action.href)) throw fault(`${url.host} gave an invalid address for ${file.path}`);
    const target = new URL(action.href);
    const own = Object.entries(action.header ?? {}).filter(([name]) => !connectionHeaders.has(name.toLowerCase()));
    const shared = credentials?.origin === target.origin ? credentials : undefined;
    return {
      file,
      url: target,
      credentials:
        own.length === 0 ? shared : { origin: target.origin, headers: { ...shared?.headers, ...Object.fromEntries(own) } },
    };
  });
}

/** What belongs to the connection, and not to the server that answered the batch. */
const connectionHeaders = new Set([
  ...['host', 'connection', 'content-length', 'transfer-encoding', 'upgrade', 'expect', 'te', 'trailer', 'keep-alive'],
  ...['proxy-authorization', 'proxy-connection', 'accept-encoding'],
]);

function missing({ path, oid }: LargeFile, host: string, error: { code: number; message: string } | undefined): AppError {
  const reason = error === undefined ? '' : ` (${error.code}: ${error.message.replace(/[^\x20-\x7e]+/g, ' ').slice(0, 200)})`;
  return fault(
    `${path} is stored with Git LFS, and ${host} does not have its content ${oid.slice(0, 12)}${reason}. Send it from a clone that has it: git lfs push --all ORIGIN`,
  );
}

function fault(message: string): AppError {
  return new AppError('validation_failed', `${message}.`);
}
