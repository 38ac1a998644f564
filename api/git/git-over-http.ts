import { outgoingBody, readRequestBody } from '#api/git/git-body.ts';
import { readToken } from '#api/git/read-token.ts';
import { toAppError, toRefusal } from '#api/http/refusal.ts';
import { createFailedCredentials, type FailedCredentials } from '#api/middleware/failed-credentials.ts';
import { type BearerOptions, verifyBearer } from '#api/middleware/guard.ts';
import { requestIdOf } from '#api/middleware/request-id.ts';
import type { Clock } from '#shared/clock.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { AppError } from '#shared/errors.ts';
import type { GitServer, GitStream } from '#shared/git/git-storage.ts';
import { type GitAddress, parseGitAddress, parseGitProtocol } from '#shared/git/protocol/git-request.ts';
import type { Log } from '#shared/log.ts';
import { type CallLimits, createCallLimits } from '#shared/rate-limits/call-limits.ts';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Dependencies of git over HTTP. */
export interface GitOverHttpOptions extends BearerOptions {
  pushes: Pushes;
  git: GitServer;
  rateLimits: Pick<RateLimits, 'take' | 'refusedMilliseconds'>;
  eventLimits: Pick<EventLimits, 'take' | 'refusedMilliseconds'>;
  /** IP address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
  clock: Clock;
  log: Log;
}

/** Answers a request of a git client. Undefined for any other request. */
export type GitOverHttp = (request: Request) => Promise<Response> | undefined;

/**
 * Serves the repositories of apps at `/<app>.git` by git's smart HTTP protocol, versions 0 and 2, for networks that block SSH. The
 * password is an access token or an API token, the user name is ignored. Bodies are streamed in both directions. The limits of a
 * push apply.
 */
export function createGitOverHttp(options: GitOverHttpOptions): GitOverHttp {
  const failures = createFailedCredentials(options);
  const calls = createCallLimits(options.rateLimits);
  return (request) => {
    const address = parseGitAddress(request.method, new URL(request.url));
    if (address === undefined) return undefined;
    const requestId = requestIdOf(request);
    return serve(request, address, { ...options, failures, calls }, requestId).catch((thrown: unknown) => {
      const error = toAppError(thrown);
      if (error.code === 'internal') options.log.error('git over HTTP failed', { request_id: requestId, error: thrown });
      return refuse(error, requestId, options.clock.now());
    });
  };
}

async function serve(
  request: Request,
  { appName, service, step }: GitAddress,
  options: GitOverHttpOptions & { failures: FailedCredentials; calls: CallLimits },
  requestId: string,
): Promise<Response> {
  const token = readToken(request.headers.get('authorization'));
  if (token === undefined) throw new AppError('unauthorized', 'Log in with an access token or an API token as the password.');
  // A request without a token is not counted as a failure: git sends one first, and the token when it is asked.
  const { caller, tokenId } = await verifyBearer(token, undefined, options).catch(async (error: unknown) => {
    throw await options.failures.count(request, error);
  });
  const [verdict, principal] = await Promise.all([
    options.calls.take({ tokenId, userId: caller.userId }),
    options.accounts.resolvePrincipal(caller),
  ]);
  if (!verdict.granted) {
    const retryAfterSeconds = Math.max(1, Math.ceil(verdict.resetMilliseconds / 1000));
    throw new AppError('rate_limited', `Too many requests. Try again in ${retryAfterSeconds} s.`, { retryAfterSeconds });
  }
  const pushing = service === 'receive-pack';
  const repository = await options.pushes.openRepository(principal, appName, pushing ? 'write' : 'read');

  const body = outgoingBody();
  const stream: GitStream = {
    input: readRequestBody(request),
    write: (chunk) => body.write(chunk),
    protocol: parseGitProtocol(request.headers.get('git-protocol') ?? '') ?? '',
    clientGone: AbortSignal.any([request.signal, body.abandoned]),
    step,
  };
  if (step === 'advertise' && (pushing || stream.protocol !== 'version=2')) await body.announce(`git-${service}`);
  const served = pushing
    ? options.git.receivePack(repository, stream, repository.applyPush)
    : options.git.uploadPack(repository, stream);
  let refusal: AppError | undefined;
  const ended = served.then(
    () => body.end(),
    (error: unknown) => {
      if (error instanceof AppError) refusal = error;
      else options.log.error('git over HTTP failed', { request_id: requestId, error });
      body.fail(new Error('the server has failed'));
    },
  );
  // The answer begins with the first output: until then the client is sending.
  await Promise.race([body.begun, ended]);
  if (refusal !== undefined) throw refusal;
  return new Response(body.readable, {
    headers: {
      'content-type': step === 'advertise' ? `application/x-git-${service}-advertisement` : `application/x-git-${service}-result`,
      'cache-control': 'no-cache, max-age=0, must-revalidate',
      'x-request-id': requestId,
    },
  });
}

/** In plain text, which git shows to the user. */
function refuse(error: AppError, requestId: string, now: Date): Response {
  const { status, headers } = toRefusal(error, requestId, now);
  const challenge = error.code === 'unauthorized' ? { 'www-authenticate': 'Basic realm="paas: a token is the password"' } : {};
  return new Response(`${error.message}\n`, {
    status,
    headers: { ...headers, ...challenge, 'content-type': 'text/plain; charset=utf-8', 'x-request-id': requestId },
  });
}
