import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import { StatusError } from '#api/http/refusal.ts';

/** Refuses PUT and PATCH without a body: they would succeed and change nothing. */
export function requireBody(): MiddlewareHandler<ApiEnv> {
  return async function refuseEmptyChange(c, next) {
    const changes = c.req.method === 'PUT' || c.req.method === 'PATCH';
    if (changes && accessOf(c) !== 'noRoute' && c.req.header('content-type') === undefined) {
      throw new StatusError(415, 'validation_failed', 'A JSON body is required. Send it with `Content-Type: application/json`.');
    }
    await next();
  };
}
