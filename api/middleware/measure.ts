import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiEnv } from '#api/http/api-env.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';
import { startStopwatch } from '#shared/metrics/stopwatch.ts';

/** Methods that a route can have. Clients can send any word, and each would create a series. */
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Measures the duration of each answer. A stream counts until its first byte. */
export function measure(metrics: Pick<Metrics, 'observeRequest'>): MiddlewareHandler<ApiEnv> {
  return async function measureRequest(c, next) {
    const elapsed = startStopwatch();
    await next();
    const route = matchedRoutes(c).find((matched) => matched.method !== 'ALL')?.path ?? 'none';
    const method = methods.has(c.req.method) ? c.req.method : 'other';
    metrics.observeRequest({ method, route, status: c.res.status, seconds: elapsed() });
  };
}
