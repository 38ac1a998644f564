import type { MiddlewareHandler } from 'hono';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import type { Accounts, ApiTokens } from '#shared/core/accounts/accounts.ts';
import { notAMember } from '#shared/core/accounts/accounts-service.ts';
import { apiTokenPrefix } from '#shared/core/accounts/api-tokens-service.ts';
import type { Person, Principal } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { Identity } from '#shared/identity/identity.ts';
import {
  type RateLimitPolicy,
  type RateLimits,
  type RateLimitVerdict,
  rateLimitPolicies,
} from '#shared/rate-limits/rate-limits.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** Who knows tokens. */
export interface BearerOptions {
  identity: Pick<Identity, 'verifyAccessToken'>;
  accounts: Pick<Accounts, 'resolvePrincipal'>;
  apiTokens: Pick<ApiTokens, 'resolveToken'>;
}

export interface GuardOptions extends BearerOptions {
  rateLimits: Pick<RateLimits, 'take'>;
  /** Address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
}

/** Decides who enters and how often: before any handler, for every route. */
export function guard(options: GuardOptions): MiddlewareHandler<ApiEnv> {
  const { rateLimits, clientAddress } = options;
  return async function guardRoute(c, next) {
    const access = accessOf(c);
    if (access === 'noRoute' || access === 'unlimited' || access === 'signed') return next();

    let verdict: RateLimitVerdict;
    const policy = access === 'perAddress' ? rateLimitPolicies.unauthenticated : rateLimitPolicies.authenticated;
    if (access === 'perAddress') {
      verdict = await rateLimits.take(policy, sourceKey(clientAddress(c.req.raw)));
    } else {
      const bearer = await resolveBearer(readBearer(c), c.req.header('x-paas-tenant'), options);
      // Counting the subject counts each of its tokens too: no token can have more hits than its subject, and the
      // limits are the same number. Both calls go to the database at once.
      const mayBelongNowhere = access === 'person' && c.req.header('x-paas-tenant') === undefined;
      const [taken, principal] = await Promise.all([
        rateLimits.take(policy, bearer.person.userId),
        mayBelongNowhere ? undefined : bearer.principal(appToRead(c)),
      ]);
      verdict = taken;
      c.set('person', bearer.person);
      if (principal !== undefined) c.set('principal', principal);
    }
    if (!verdict.granted) tellLimit(c, policy, verdict);
    await next();
    const { headers } = c.res;
    for (const [name, value] of limitHeaders(policy, verdict)) headers.set(name, value);
  };
}

/** `Bearer` and nothing else, given once. Two Authorization headers reach us as one with a comma, which no token has. */
function readBearer(c: ApiContext): string {
  const header = c.req.header('authorization');
  if (header === undefined)
    throw new AppError('unauthorized', 'An access token is needed: log in, then send `Authorization: Bearer <access_token>`.');
  const token = /^Bearer +([A-Za-z0-9_.-]+)$/i.exec(header)?.[1];
  if (token === undefined)
    throw new AppError('unauthorized', 'The Authorization header must be `Bearer <access_token>`, given once.');
  return token;
}

/**
 * The app that the path names, when nothing but reading is asked for: then membership and app can be read at once, since
 * no body is waited for in between.
 */
function appToRead(c: ApiContext): string | undefined {
  if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return undefined;
  return /^\/v1\/apps\/([A-Za-z0-9-]{1,64})(?:\/|$)/.exec(c.req.path)?.[1];
}

/**
 * Whose token it is, and a way to learn in which tenant and role they act. `principal` may read an app along, see
 * `Accounts.resolvePrincipal`. @param tenant the one asked for by header
 */
export async function resolveBearer(
  token: string,
  tenant: string | undefined,
  { identity, accounts, apiTokens }: BearerOptions,
): Promise<{ person: Person; principal(app?: string): Promise<Principal> }> {
  if (!token.startsWith(apiTokenPrefix)) {
    const subject = await identity.verifyAccessToken(token);
    const person = { userId: subject.id, email: subject.email };
    return { person, principal: (app) => accounts.resolvePrincipal(subject, tenant, app) };
  }
  const principal = await apiTokens.resolveToken(token);
  if (principal === undefined)
    throw new AppError('unauthorized', 'The API token is not valid: it has expired, or was revoked. Make a new one.');
  if (tenant !== undefined && tenant !== principal.tenantId) throw notAMember();
  return { person: principal, principal: async () => principal };
}

function tellLimit(c: ApiContext, policy: RateLimitPolicy, verdict: RateLimitVerdict): never {
  const retryAfterSeconds = Math.max(1, Math.ceil(verdict.resetMilliseconds / 1000));
  for (const [name, value] of limitHeaders(policy, verdict)) c.header(name, value);
  throw new AppError(
    'rate_limited',
    `Too many requests: at most ${policy.limit} in ${policy.windowSeconds} s. Try again in ${retryAfterSeconds} s.`,
    {
      retryAfterSeconds,
    },
  );
}

/** As draft-ietf-httpapi-ratelimit-headers has them. */
function limitHeaders(policy: RateLimitPolicy, verdict: RateLimitVerdict): [name: string, value: string][] {
  return [
    ['ratelimit-policy', `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`],
    ['ratelimit', `"${policy.name}";r=${verdict.remaining};t=${Math.ceil(verdict.resetMilliseconds / 1000)}`],
  ];
}
