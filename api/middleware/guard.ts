import type { MiddlewareHandler } from 'hono';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import type { Accounts, ApiTokens } from '#shared/core/accounts/accounts.ts';
import { apiTokenPrefix } from '#shared/core/accounts/api-tokens-service.ts';
import { notAMember } from '#shared/core/accounts/callers.ts';
import type { Caller } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { Identity } from '#shared/identity/identity.ts';
import {
  type RateLimitPolicy,
  type RateLimits,
  type RateLimitVerdict,
  rateLimitPolicies,
} from '#shared/rate-limits/rate-limits.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';

/** The services that verify tokens. */
export interface BearerOptions {
  identity: Pick<Identity, 'verifyAccessToken'>;
  accounts: Pick<Accounts, 'resolvePrincipal'>;
  apiTokens: Pick<ApiTokens, 'resolveToken'>;
}

/** Dependencies of `guard`. */
export interface GuardOptions extends BearerOptions {
  rateLimits: Pick<RateLimits, 'take'>;
  /** IP address of the client, as the gateway saw it. */
  clientAddress(request: Request): string;
}

/** Authenticates and rate-limits every request before it reaches a handler. */
export function guard(options: GuardOptions): MiddlewareHandler<ApiEnv> {
  const { accounts, rateLimits, clientAddress } = options;
  return async function guardRoute(c, next) {
    const access = accessOf(c);
    if (access === 'noRoute' || access === 'unlimited' || access === 'signed' || access === 'ofBuild') return next();

    let verdict: RateLimitVerdict;
    const policy = access === 'perAddress' ? rateLimitPolicies.unauthenticated : rateLimitPolicies.authenticated;
    if (access === 'perAddress') {
      verdict = await rateLimits.take(policy, sourceKey(clientAddress(c.req.raw)));
    } else {
      const caller = await verifyBearer(readBearer(c), c.req.header('x-paas-tenant'), options);
      // Counting the user counts each of their tokens too: no token can have more hits than its user, and the limits are
      // the same number.
      verdict = await rateLimits.take(policy, caller.userId);
      c.set('caller', caller);
    }
    if (!verdict.granted) refuseForLimit(c, policy, verdict);
    // Every other operation resolves its caller itself.
    if (access === 'person' && c.req.header('x-paas-tenant') !== undefined)
      c.set('caller', await accounts.resolvePrincipal(c.get('caller')));
    await next();
    const { headers } = c.res;
    for (const [name, value] of limitHeaders(policy, verdict)) headers.set(name, value);
  };
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

/**
 * Who calls, by an access token or an API token.
 * @param requestedTenant the tenant that the caller asks to act for; undefined when they leave it open
 * @throws AppError `unauthorized` for a token that is not valid, `forbidden` for an API token of another tenant
 */
export async function verifyBearer(
  token: string,
  requestedTenant: string | undefined,
  { identity, apiTokens }: Pick<BearerOptions, 'identity' | 'apiTokens'>,
): Promise<Caller> {
  if (!token.startsWith(apiTokenPrefix)) {
    const { id, email } = await identity.verifyAccessToken(token);
    return { userId: id, email, requestedTenantId: requestedTenant };
  }
  const principal = await apiTokens.resolveToken(token);
  if (principal === undefined)
    throw new AppError('unauthorized', 'The API token is not valid. It has expired or was revoked. Create a new one.');
  if (requestedTenant !== undefined && requestedTenant !== principal.tenantId) throw notAMember();
  return principal;
}

function refuseForLimit(c: ApiContext, policy: RateLimitPolicy, verdict: RateLimitVerdict): never {
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

/** Headers of draft-ietf-httpapi-ratelimit-headers. */
function limitHeaders(policy: RateLimitPolicy, verdict: RateLimitVerdict): [name: string, value: string][] {
  return [
    ['ratelimit-policy', `"${policy.name}";q=${policy.limit};w=${policy.windowSeconds}`],
    ['ratelimit', `"${policy.name}";r=${verdict.remaining};t=${Math.ceil(verdict.resetMilliseconds / 1000)}`],
  ];
}
