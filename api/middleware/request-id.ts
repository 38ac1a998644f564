import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from '#api/http/api-env.ts';
import { type Refusal, toAppError, toRefusal } from '#api/http/refusal.ts';
import type { Clock } from '#shared/clock.ts';
import type { Log } from '#shared/log.ts';
import { isRequestId, newRequestId } from '#shared/request-id.ts';

/** The request id that the gateway gave, or a new one. */
export function requestIdOf(request: Request): string {
  const given = request.headers.get('x-request-id');
  return given !== null && isRequestId(given) ? given : newRequestId();
}

/** Gives each request an id, and sets `refuse`, which puts the id into error answers and logs. */
export function requestId({ clock, log }: { clock: Clock; log: Log }): MiddlewareHandler<ApiEnv> {
  return async function nameRequest(c, next) {
    const id = requestIdOf(c.req.raw);
    c.set('requestId', id);
    c.set('refuse', (thrown: unknown): Refusal => {
      const error = toAppError(thrown);
      if (error.code === 'internal') {
        log.error('request failed', { request_id: id, method: c.req.method, path: c.req.path, error: error.cause ?? error });
      }
      return toRefusal(error, id, clock.now());
    });
    await next();
    c.res.headers.set('x-request-id', id);
  };
}
