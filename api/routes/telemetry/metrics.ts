import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, guarded, pageOf, presentWhole, refusalsOf } from '#api/openapi/schemas.ts';
import { MetricSeriesSchema, presentMetricSeries } from '#api/resources/metric.ts';
import { parseRange } from '#shared/core/telemetry/metric-range.ts';
import type { AppMetrics } from '#shared/core/telemetry/telemetry.ts';
import { secondsPerHour } from '#shared/durations.ts';
import { omitUndefined } from '#shared/omit-undefined.ts';
import { metricKinds } from '#shared/platform/metrics.ts';

const readMetrics = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/metrics',
  operationId: 'readMetrics',
  summary: 'Get metrics of an app',
  description:
    'Metrics are measured every 10 s and kept for 30 days. The step between two points grows with the range: 10 s up to one hour, 2 h for ' +
    '30 days. Latency is the time to the last byte. Percentiles are exact to about 20 percent.',
  tags: ['metrics'],
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      range: z
        .string()
        .regex(/^\d{1,7}[smhd]$/, 'must be a time span such as 15m, 6h or 30d')
        .refine((text) => parseRange(text) !== undefined, 'must be from 1m to 30d')
        .default('1h')
        .openapi({ description: 'Time span up to now, from `1m` to `30d`.', example: '1h' }),
      kind: z.enum(metricKinds).optional().openapi({ description: 'Default: all kinds.' }),
    }),
  },
  responses: {
    200: answer(
      pageOf(MetricSeriesSchema),
      'One series per process type. Requests, errors and latency are measured for `web` only. Latency has one series per statistic.',
    ),
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

/** Adds the route of an app's metrics. */
export function addMetricRoutes(api: Api, metrics: AppMetrics): void {
  api.openapi(readMetrics, async (c) => {
    const { range, kind } = c.req.valid('query');
    const query = omitUndefined({ rangeSeconds: parseRange(range) ?? secondsPerHour, kind });
    const series = await metrics.readMetrics(c.get('caller'), c.req.valid('param').id, query);
    return c.json(presentWhole(series, presentMetricSeries), 200);
  });
}
