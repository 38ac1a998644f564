import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { ApiEnv } from '#api/http/api-env.ts';

/** Headers of requests that scripts may set. */
const allowHeaders = ['authorization', 'content-type', 'idempotency-key', 'if-none-match', 'last-event-id', 'x-paas-tenant'];
/** Headers of answers that scripts may read. */
const exposeHeaders = [
  'etag',
  'idempotency-replayed',
  'location',
  'ratelimit',
  'ratelimit-policy',
  'retry-after',
  'x-request-id',
];
const preflightSeconds = 600;

/**
 * Lets scripts of these origins call the API (CORS). They need a token: there are no cookies.
 * @param origins as browsers send them: `https://dashboard.example.com`
 */
export function crossOrigin(origins: readonly string[]): MiddlewareHandler<ApiEnv> {
  const answer = cors({
    origin: [...origins],
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    allowHeaders,
    exposeHeaders,
    maxAge: preflightSeconds,
  });
  return async function allowOrigins(c, next) {
    if (c.req.method === 'OPTIONS') return answer(c, next);
    await next();
    // Only now there is an answer for sure: errors and limits replace those before them.
    return answer(c, async () => undefined);
  };
}
