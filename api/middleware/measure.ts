import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiEnv } from '#api/http/api-env.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';

/** Methods that a route can have; any other word is a visitor's invention, and would make a series each. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Tells how long each answer took. A stream counts until its first byte. */
export function measure(metrics: Pick<Metrics, 'observeRequest'>): MiddlewareHandler<ApiEnv> {
  return async function measureRequest(c, next) {
    const elapsed = startStopwatch();
    await next();
    const route = matchedRoutes(c).find((matched) => matched.method !== 'ALL')?.path ?? 'none';
    const method = methods.has(c.req.method) ? c.req.method : 'other';
    metrics.observeRequest({ method, route, status: c.res.status, seconds: elapsed() });
  };
}
