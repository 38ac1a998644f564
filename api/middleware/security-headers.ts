import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from '#api/http/api-env.ts';

/** Answers of the API are no pages, cannot be framed, and are not cached unless they say otherwise. */
export function securityHeaders(): MiddlewareHandler<ApiEnv> {
  return async function hardenAnswer(c, next) {
    await next();
    const { headers } = c.res;
    headers.set('x-content-type-options', 'nosniff');
    headers.set('content-security-policy', "default-src 'none'; frame-ancestors 'none'");
    headers.set('referrer-policy', 'no-referrer');
    headers.set('cross-origin-resource-policy', 'same-origin');
    if (!headers.has('cache-control')) headers.set('cache-control', 'no-store');
  };
}
