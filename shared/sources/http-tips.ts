import { type HttpClient, listServerRefs } from 'isomorphic-git';
import { AppError } from '#shared/errors.ts';
import { type GuardedRequestOptions, guardedRequest } from '#shared/sources/guarded-request.ts';
import { credentialsFor, missingHint } from '#shared/sources/http-access.ts';
import { tipsOf } from '#shared/sources/remote-tips.ts';
import type { RemoteTips, TipsRequest } from '#shared/sources/source-hosts.ts';

/** Of one answer: room for ten thousand branches. */
const mostBytes = 4 * 1024 * 1024;
const redirects = 3;

/**
 * Lists branches over smart HTTP, by isomorphic-git over `guardedRequest`. Only the first request may be redirected; later
 * requests use its target.
 */
export async function listTipsByHttp({ url, token, signal }: TipsRequest, options: GuardedRequestOptions): Promise<RemoteTips> {
  const base = url.replace(/\/+$/, '');
  const { host } = new URL(url);
  let target = base;
  const http: HttpClient = {
    async request({ url: asked, method = 'GET', headers = {}, body }) {
      const response = await guardedRequest(
        new URL(asked.replace(base, () => target)),
        {
          method: method === 'POST' ? 'POST' : 'GET',
          headers: { ...headers, 'user-agent': 'git/2 (paas)', 'accept-encoding': 'identity' },
          ...(body === undefined ? {} : { body: Buffer.concat(await Array.fromAsync(body)) }),
          redirects: method === 'POST' ? 0 : redirects,
          hint: missingHint(token),
          credentials: credentialsFor(url, token),
          signal,
        },
        options,
      );
      target = /^(.*)\/info\/refs\?[^/]*$/.exec(response.url.href)?.[1] ?? target;
      return {
        url: response.url.href,
        method,
        headers: response.headers as Record<string, string>,
        body: bounded(response.body, host),
        statusCode: 200,
        statusMessage: 'OK',
      };
    },
  };
  const refs = await list(http, base, host);
  return tipsOf(refs.map(({ ref, oid, target: symref }) => ({ name: ref, oid, target: symref })));
}

async function list(http: HttpClient, url: string, host: string): ReturnType<typeof listServerRefs> {
  try {
    return await listServerRefs({ http, url, symrefs: true });
  } catch (error) {
    if (error instanceof AppError) throw error;
    throw new AppError('validation_failed', `${host} has no git repository at ${new URL(url).pathname}.`, { cause: error });
  }
}

async function* bounded(chunks: AsyncIterable<Uint8Array>, host: string): AsyncGenerator<Uint8Array, void, void> {
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw new AppError('validation_failed', `${host} lists too many branches.`);
    yield chunk;
  }
}
