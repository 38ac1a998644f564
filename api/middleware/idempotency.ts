import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import type { Accounts } from '#shared/core/accounts/accounts.ts';
import { isPrincipal } from '#shared/core/accounts/callers.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { IdempotencyKeys } from '#shared/idempotency/idempotency.ts';

const keyPattern = /^[\x21-\x7e]{1,255}$/;

/**
 * A POST with an Idempotency-Key is done once: the same key and request gets the first answer again, the same key with
 * another request is a conflict. Refusals are not kept, so that the mended request can use the key. What is made gets an id
 * that belongs to the key: where the answer was lost with a process, the request finds what it made before.
 */
export function idempotency(keys: IdempotencyKeys, accounts: Pick<Accounts, 'resolvePrincipal'>): MiddlewareHandler<ApiEnv> {
  return async function answerOnce(c, next) {
    const key = c.req.header('idempotency-key');
    if (key === undefined || c.req.method !== 'POST') return next();
    // Public routes have nobody to keep an answer for, and nobody is resolved who may belong to no tenant yet.
    const caller = c.get('caller') as ApiEnv['Variables']['caller'] | undefined;
    if (caller === undefined || showsSecret(c) || (accessOf(c) === 'person' && !isPrincipal(caller))) return next();
    if (!keyPattern.test(key)) {
      throw new AppError('validation_failed', 'The Idempotency-Key must be 1 to 255 visible ASCII characters.', {
        details: [{ path: 'idempotency-key', message: 'must be 1 to 255 visible ASCII characters' }],
      });
    }

    const principal = await accounts.resolvePrincipal(caller);
    c.set('caller', principal);
    const request = { subject: subjectOf(principal), key, requestHash: await hashRequest(c) };
    const claim = await keys.claim(request);
    if (claim.state === 'mismatch')
      throw new AppError('conflict', 'This Idempotency-Key was used for another request. Use a new one.');
    if (claim.state === 'running')
      throw new AppError('conflict', 'The first request with this Idempotency-Key is still running. Try again soon.');
    if (claim.state === 'answered') {
      const headers = { 'content-type': 'application/json', 'idempotency-replayed': 'true' };
      return new Response(claim.answer.body, { status: claim.answer.status, headers });
    }

    c.set('resourceId', claim.resourceId);
    await next();
    // Hono has turned whatever was thrown into a response by now.
    if (c.res.ok) await keys.complete(request, { status: c.res.status, body: await c.res.clone().text() });
    else if (c.res.status >= 500) await keys.abandon(request);
    else await keys.release(request);
  };
}

/** What is shown once is not kept to be shown again. */
const secretAnswers = ['/v1/auth/tokens', '/v1/tenant/invitations'];

function showsSecret(c: ApiContext): boolean {
  return matchedRoutes(c).some((route) => route.method === 'POST' && secretAnswers.includes(route.path));
}

/** Another tenant's answers, and those a wider token got, are not for this caller. */
function subjectOf({ tenantId, userId, tokenScope }: Principal): string {
  return [tenantId, tokenScope ?? 'login', userId].join('/');
}

async function hashRequest(c: ApiContext): Promise<string> {
  const text = `${c.req.method} ${c.req.path}\n${await c.req.text()}`;
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))).toHex();
}
