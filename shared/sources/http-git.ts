import { ByteReader } from '#shared/byte-reader.ts';
import { AppError } from '#shared/errors.ts';
import { encodeFetch, encodeRefQuestion, readGreeting, readPack, readRefAnswer } from '#shared/sources/git-fetch.ts';
import { type GuardedRequestOptions, type GuardedResponse, guardedRequest } from '#shared/sources/guarded-request.ts';
import { credentialsFor, missingHint } from '#shared/sources/http-access.ts';
import { noSuchRef } from '#shared/sources/no-such-ref.ts';
import type { FetchedSource, SourceRequest } from '#shared/sources/source-hosts.ts';

const service = 'git-upload-pack';
const common = { 'user-agent': 'git/2 (paas)', 'git-protocol': 'version=2', 'accept-encoding': 'identity' };
const redirects = 3;

/** Fetches over smart HTTP, gitprotocol-http(5). Only the first request may be redirected; later requests use its target. */
export async function fetchByHttp(asked: SourceRequest, options: GuardedRequestOptions): Promise<FetchedSource> {
  const { signal, ref, haves } = asked;
  // A submodule: its message says what to do.
  const hint = asked.withoutHistory === true ? ': it does not exist or is private' : missingHint(asked.token);
  const credentials = credentialsFor(asked.url, asked.token);
  const withAccess = { hint, credentials, signal };
  const start = new URL(`${asked.url.replace(/\/+$/, '')}/info/refs?service=${service}`);
  const greeting = await guardedRequest(start, { method: 'GET', headers: common, redirects, ...withAccess }, options);
  requireType(greeting, 'advertisement');
  const { canShallow } = await readGreeting(new ByteReader(greeting.body));
  const [, base] = /^(.*)\/info\/refs\?[^/]*$/.exec(greeting.url.href) ?? [];
  if (base === undefined)
    throw new AppError('validation_failed', `${start.host} redirects to an address that is not a git repository.`);
  const command = async (body: Uint8Array): Promise<ByteReader> => {
    const headers = { ...common, 'content-type': `application/x-${service}-request`, accept: `application/x-${service}-result` };
    const answer = await guardedRequest(new URL(`${base}/${service}`), { method: 'POST', headers, body, ...withAccess }, options);
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
