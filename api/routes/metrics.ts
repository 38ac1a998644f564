import { createRoute, z } from '@hono/zod-openapi';
import type { Api } from '#api/http/api-env.ts';
import { answer, appParams, bearer, dataOf, guarded, refusalsOf } from '#api/openapi/schemas.ts';
import { MetricSeriesSchema, presentMetricSeries } from '#api/resources/metric.ts';
import { metricKinds } from '#shared/core/telemetry/app-metrics-service.ts';
import { parseRange } from '#shared/core/telemetry/metric-range.ts';
import type { AppMetrics } from '#shared/core/telemetry/telemetry.ts';

const readMetrics = createRoute({
  method: 'get',
  path: '/v1/apps/{id}/metrics',
  operationId: 'readMetrics',
  summary: 'What an app uses, and how it answers',
  description:
    'Measured every 10 s and kept for 30 days. The longer the range, the further apart the points: 10 s up to an hour, 2 h for 30 days. ' +
    'Latency is what visitors waited for the last byte: half of the requests no longer than `p50`, 95 of 100 no longer than `p95`; within a fifth or so.',
  tags: ['metrics'],
  security: bearer,
  request: {
    params: appParams,
    query: z.object({
      range: z
        .string()
        .regex(/^\d{1,7}[smhd]$/, 'must be a time as 15m, 6h or 30d')
        .refine((text) => parseRange(text) !== undefined, 'must be from 1m to 30d')
        .default('1h')
        .openapi({ description: 'Up to now: from `1m` to `30d`.', example: '1h' }),
      kind: z.enum(metricKinds).optional().openapi({ description: 'One kind only; all of them when left out.' }),
    }),
  },
  responses: {
    200: answer(
      dataOf(z.array(MetricSeriesSchema)),
      'A series a process type; of requests, errors and latency for `web` alone, of latency one a statistic.',
    ),
    ...guarded,
    ...refusalsOf(404, 422),
  },
});

export function addMetricRoutes(api: Api, metrics: AppMetrics): void {
  api.openapi(readMetrics, async (c) => {
    const { range, kind } = c.req.valid('query');
    const query = { rangeSeconds: parseRange(range) ?? 3600, ...(kind === undefined ? {} : { kind }) };
    const series = await metrics.readMetrics(c.get('caller'), c.req.valid('param').id, query);
    return c.json({ data: series.map(presentMetricSeries) }, 200);
  });
}
