import type { MiddlewareHandler } from 'hono';
import type { ApiContext, ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import type { Accounts } from '#shared/core/accounts/accounts.ts';
import { isPrincipal } from '#shared/core/accounts/callers.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { AppError } from '#shared/errors.ts';
import type { IdempotencyKeys } from '#shared/idempotency/idempotency.ts';

const keyPattern = /^[\x21-\x7e]{1,255}$/;

/**
 * Executes a POST with an Idempotency-Key once. The same key and request gets the first answer again. The same key with another
 * request is a conflict. Error answers are not stored, so that the corrected request can use the key. The id of the created resource
 * belongs to the key: a request whose answer was lost with a process finds the resource that it created before.
 */
export function idempotency(keys: IdempotencyKeys, accounts: Pick<Accounts, 'resolvePrincipal'>): MiddlewareHandler<ApiEnv> {
  return async function answerOnce(c, next) {
    const key = c.req.header('idempotency-key');
    if (key === undefined || c.req.method !== 'POST') return next();
    // Answers are stored for a principal. Callers of public routes have none, nor do callers without a tenant.
    const caller = c.get('caller') as ApiEnv['Variables']['caller'] | undefined;
    if (caller === undefined || (accessOf(c) === 'person' && !isPrincipal(caller))) return next();
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
    // Hono has made a response of every error by now.
    if (c.res.ok) await keys.complete(request, { status: c.res.status, body: await c.res.clone().text() });
    else if (c.res.status >= 500) await keys.abandon(request);
    else await keys.release(request);
  };
}

/** The caller must not get answers of another tenant, or answers to a token with a wider scope. */
function subjectOf({ tenantId, userId, tokenScope }: Principal): string {
  return [tenantId, tokenScope ?? 'login', userId].join('/');
}

async function hashRequest(c: ApiContext): Promise<string> {
  const text = `${c.req.method} ${c.req.path}\n${await c.req.text()}`;
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))).toHex();
}
