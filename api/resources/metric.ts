import { z } from '@hono/zod-openapi';
import { timestamp } from '#api/openapi/schemas.ts';
import type { MetricSeries } from '#shared/core/telemetry/telemetry.ts';
import { metricKinds } from '#shared/platform/metrics.ts';

export const MetricSeriesSchema = z
  .object({
    name: z.enum(metricKinds),
    unit: z.string().openapi({
      description: '`cores`, `bytes` (maximum of the step), `requests` (sum of the step) or `milliseconds`.',
      example: 'requests',
    }),
    labels: z.record(z.string(), z.string()).openapi({
      description: '`process`: the process type. `statistic`, for latency only: `p50`, `p95`, `p99` or `mean`.',
      example: { process: 'web' },
    }),
    step_seconds: z
      .int()
      .openapi({ description: 'Seconds between two points. Steps without a value are left out.', example: 10 }),
    points: z.array(z.tuple([timestamp, z.number()])).openapi({ description: 'Start of each step and its value, oldest first.' }),
  })
  .openapi('MetricSeries');

/** A metric with its points, oldest first. */
export function presentMetricSeries(series: MetricSeries): z.infer<typeof MetricSeriesSchema> {
  return {
    name: series.name,
    unit: series.unit,
    labels: { ...series.labels },
    step_seconds: series.stepSeconds,
    points: series.points.map(([ts, value]) => [ts.toISOString(), value]),
  };
}
