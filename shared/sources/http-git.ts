import { ByteReader } from '#shared/byte-reader.ts';
import { AppError } from '#shared/errors.ts';
import { encodeFetch, encodeRefQuestion, readGreeting, readPack, readRefAnswer } from '#shared/sources/git-fetch.ts';
import { type GuardedRequestOptions, type GuardedResponse, guardedRequest } from '#shared/sources/guarded-request.ts';
import { noSuchRef } from '#shared/sources/no-such-ref.ts';
import type { FetchedSource, SourceRequest } from '#shared/sources/source-hosts.ts';

const service = 'git-upload-pack';
const common = { 'user-agent': 'git/2 (paas)', 'git-protocol': 'version=2', 'accept-encoding': 'identity' };
const redirects = 3;
const missing = ': it does not exist or is private';
const hintForOwn = `${missing}. For a private repository set its SSH address, and add the deploy key that GET /v1/apps/<app>/git shows`;

/** Fetches over smart HTTP, gitprotocol-http(5). Only the first request may be redirected; later requests use its target. */
export async function fetchByHttp(asked: SourceRequest, options: GuardedRequestOptions): Promise<FetchedSource> {
  const { signal, ref, haves } = asked;
  // The deploy key only works for the app's own source.
  const hint = asked.withoutHistory === true ? missing : hintForOwn;
  const start = new URL(`${asked.url.replace(/\/+$/, '')}/info/refs?service=${service}`);
  const greeting = await guardedRequest(start, { method: 'GET', headers: common, redirects, hint, signal }, options);
  requireType(greeting, 'advertisement');
  const { canShallow } = await readGreeting(new ByteReader(greeting.body));
  const [, base] = /^(.*)\/info\/refs\?[^/]*$/.exec(greeting.url.href) ?? [];
  if (base === undefined)
    throw new AppError('validation_failed', `${start.host} redirects to an address that is not a git repository.`);
  const command = async (body: Uint8Array): Promise<ByteReader> => {
    const headers = { ...common, 'content-type': `application/x-${service}-request`, accept: `application/x-${service}-result` };
    const answer = await guardedRequest(new URL(`${base}/${service}`), { method: 'POST', headers, body, hint, signal }, options);
    requireType(answer, 'result');
    return new ByteReader(answer.body);
  };
  const commit = asked.commit ?? (await readRefAnswer(await command(encodeRefQuestion(ref)), ref));
  if (commit === undefined) throw noSuchRef(ref);
  const depth = asked.withoutHistory === true && canShallow ? 1 : undefined;
  return { commit, pack: readPack(await command(encodeFetch(commit, haves, depth))) };
}

function requireType({ headers, url }: GuardedResponse, kind: 'advertisement' | 'result'): void {
  if (headers['content-type'] === `application/x-${service}-${kind}`) return;
  throw new AppError('validation_failed', `${url.host} has no git repository at ${url.pathname.replace(/\/info\/refs$/, '')}.`);
}
