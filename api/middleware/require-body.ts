import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from '#api/http/api-env.ts';
import { accessOf } from '#api/http/public-routes.ts';
import { StatusError } from '#api/http/refusal.ts';

/** PUT and PATCH say what is to be: without a body they would be taken to say "nothing", and change nothing in silence. */
export function requireBody(): MiddlewareHandler<ApiEnv> {
  return async function refuseEmptyChange(c, next) {
    const changes = c.req.method === 'PUT' || c.req.method === 'PATCH';
    if (changes && accessOf(c) !== 'noRoute' && c.req.header('content-type') === undefined) {
      throw new StatusError(415, 'validation_failed', 'A JSON body is needed, sent with `Content-Type: application/json`.');
    }
    await next();
  };
}
