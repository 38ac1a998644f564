import type { MiddlewareHandler, Next } from 'hono';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { wantsEvents } from '#api/http/event-stream.ts';
import { type Access, accessOf } from '#api/http/public-routes.ts';
import type { FailedCredentials } from '#api/middleware/failed-credentials.ts';
import type { Accounts, ApiTokens } from '#shared/core/accounts/accounts.ts';
import { apiTokenPrefix } from '#shared/core/accounts/api-tokens-service.ts';
import { notAMember } from '#shared/core/accounts/callers.ts';
import type { Caller } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { Identity } from '#shared/identity/identity.ts';
import type { CallLimits, CallVerdict } from '#shared/rate-limits/call-limits.ts';
import { type RateLimits, rateLimitPolicies } from '#shared/rate-limits/rate-limits.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** The services that verify tokens. */
export interface BearerOptions {
  identity: Pick<Identity, 'verifyAccessToken'>;
  accounts: Pick<Accounts, 'resolvePrincipal'>;
  apiTokens: Pick<ApiTokens, 'resolveToken'>;
}

/** Dependencies of `guard`. */
export interface GuardOptions extends BearerOptions {
  calls: CallLimits;
  failures: FailedCredentials;
  rateLimits: Pick<RateLimits, 'take'>;
  /** IP address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
}

/** Authenticates and rate-limits every request before it reaches a handler, and counts each failure of credentials after it. */
export function guard(options: GuardOptions): MiddlewareHandler<ApiEnv> {
  const { failures } = options;
  return async function guardRoute(c, next) {
    const access = accessOf(c);
    if (access === 'noRoute' || access === 'unlimited') return next();
    let error: unknown;
    try {
      await serve(c, next, access, options);
      // Hono has made a response of what a handler threw.
      error = c.error;
    } catch (thrown) {
      error = thrown;
    }
    if (error === undefined) return;
    const answered = await failures.count(c.req.raw, error);
    if (answered === c.error) return;
    discardResponse(c);
    throw answered;
  };
}

async function serve(c: ApiContext, next: Next, access: Access, options: GuardOptions): Promise<void> {
  if (access === 'token' || access === 'person') return serveCaller(c, next, access, options);
  if (access === 'password') options.failures.check(c.req.raw);
  if (access !== 'perAddress' && access !== 'password') return next();
  const policy = rateLimitPolicies.unauthenticated;
  const verdict = await options.rateLimits.take(policy, sourceKey(options.clientAddress(c.req.raw)));
  if (!verdict.granted) refuseForLimit(c, { policy, ...verdict });
  await next();
  setLimitHeaders(c, { policy, ...verdict });
}

async function serveCaller(c: ApiContext, next: Next, access: Access, options: GuardOptions): Promise<void> {
  const { calls, accounts } = options;
  const token = readBearer(c);
  const tenant = c.req.header('x-paas-tenant');
  const { caller, tokenId } = await verifyBearer(token, tenant, options);
  c.set('caller', caller);
  c.set('verifyAgain', async () => (await verifyBearer(token, tenant, options)).caller);
  const subject = { tokenId, userId: caller.userId };
  const known = calls.refusal(subject);
  if (known !== undefined) refuseForLimit(c, known);
  if (readsAtOnce(c)) {
    const counting = calls.take(subject);
    // It is awaited below, after what runs beside it.
    counting.catch(() => undefined);
    await next();
    const verdict = await counting;
    if (!verdict.granted) {
      discardResponse(c);
      refuseForLimit(c, verdict);
    }
    return setLimitHeaders(c, verdict);
  }
  const verdict = await calls.take(subject);
  if (!verdict.granted) refuseForLimit(c, verdict);
  // Every other operation resolves its caller itself.
  if (access === 'person' && c.req.header('x-paas-tenant') !== undefined)
    c.set('caller', await accounts.resolvePrincipal(c.get('caller')));
  await next();
  setLimitHeaders(c, verdict);
}

/**
 * A read is run while its call is counted, which saves the time of a statement. Its answer is discarded if the call is refused. A
 * limited caller gets few reads done so: once a refusal is known, calls are refused before they read.
 */
function readsAtOnce(c: ApiContext): boolean {
  return (c.req.method === 'GET' || c.req.method === 'HEAD') && !wantsEvents(c);
}

/** Without it, Hono would add the headers of the discarded response to the next one. */
function discardResponse(c: ApiContext): void {
  void c.res.body?.cancel().catch(() => undefined);
  c.res = undefined;
  c.finalized = false;
  c.error = undefined;
}

/** The token of an Authorization header. Two such headers arrive as one with a comma, which no token has. */
function readBearer(c: ApiContext): string {
  const header = c.req.header('authorization');
  if (header === undefined)
    throw new AppError('unauthorized', 'An access token is required. Log in, and send `Authorization: Bearer <access_token>`.');
  const token = /^Bearer +([A-Za-z0-9_.-]+)$/i.exec(header)?.[1];
  if (token === undefined)
    throw new AppError('unauthorized', 'The request must have one Authorization header: `Bearer <access_token>`.');
  return token;
}

/** Who calls, and by which token. */
export interface VerifiedBearer {
  caller: Caller;
  /** `jti` of an access token, or id of an API token. */
  tokenId: string;
}

/**
 * Who calls, by an access token or an API token.
 * @param requestedTenant the tenant that the caller asks to act for; undefined when they leave it open
 * @throws AppError `unauthorized` for a token that is not valid, `forbidden` for an API token of another tenant
 */
export async function verifyBearer(
  token: string,
  requestedTenant: string | undefined,
  { identity, apiTokens }: Pick<BearerOptions, 'identity' | 'apiTokens'>,
): Promise<VerifiedBearer> {
  if (!token.startsWith(apiTokenPrefix)) {
    const { id, email, tokenId, sessionId } = await identity.verifyAccessToken(token);
    return { caller: { userId: id, email, sessionId, requestedTenantId: requestedTenant }, tokenId };
  }
  const found = await apiTokens.resolveToken(token);
  if (found === undefined)
    throw new AppError('unauthorized', 'The API token is not valid. It has expired or was revoked. Create a new one.');
  const { tokenId, ...principal } = found;
  if (requestedTenant !== undefined && requestedTenant !== principal.tenantId) throw notAMember();
  return { caller: principal, tokenId };
}

function refuseForLimit(c: ApiContext, verdict: CallVerdict): never {
  const { policy, resetMilliseconds } = verdict;
  const retryAfterSeconds = Math.max(1, Math.ceil(resetMilliseconds / 1000));
  for (const [name, value] of limitHeaders(verdict)) c.header(name, value);
  throw new AppError(
    'rate_limited',
    `Too many requests: at most ${policy.limit} in ${policy.windowSeconds} s. Try again in ${retryAfterSeconds} s.`,
    { retryAfterSeconds },
  );
}

function setLimitHeaders(c: ApiContext, verdict: CallVerdict): void {
  for (const [name, value] of limitHeaders(verdict)) c.res.headers.set(name, value);
}

/** Headers of draft-ietf-httpapi-ratelimit-headers. */
function limitHeaders({ policy, remaining, resetMilliseconds }: CallVerdict): [name: string, value: string][] {
  return [
    ['ratelimit-policy', `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`],
    ['ratelimit', `"${policy.name}";r=${remaining};t=${Math.ceil(resetMilliseconds / 1000)}`],
  ];
}
