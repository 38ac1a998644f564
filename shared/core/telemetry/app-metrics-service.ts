import type { CallerContext } from '#shared/core/accounts/principals.ts';
import { requireApp } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import { resolutionOf } from '#shared/core/telemetry/metric-range.ts';
import { seriesOfSamples } from '#shared/core/telemetry/sampled-series.ts';
import { readSamples } from '#shared/core/telemetry/samples-store.ts';
import type { AppMetrics } from '#shared/core/telemetry/telemetry.ts';
import type { AppId } from '#shared/ids.ts';
import { type AppSeries, type MetricKind, metricKinds } from '#shared/platform/metrics.ts';
import type { Platform } from '#shared/platform/platform.ts';

/** What reading metrics needs. */
type MetricsContext = CallerContext & Pick<Context, 'clock'> & { platform: Pick<Platform, 'metrics'> };

const units: Readonly<Record<MetricKind, string>> = {
  cpu: 'cores',
  memory: 'bytes',
  requests: 'requests',
  errors: 'requests',
  latency: 'milliseconds',
};

/** Metrics of apps, wherever the platform has them from. */
export function createAppMetrics(context: MetricsContext): AppMetrics {
  return {
    async readMetrics(caller, app, { kind, rangeSeconds }) {
      const { id } = (await requireApp(context, caller, app)).row;
      const { stepSeconds } = resolutionOf(rangeSeconds);
      const kinds = kind === undefined ? metricKinds : [kind];
      const series = await readAllSeries(context, id, kinds, rangeSeconds);
      return series.flatMap(({ name, found }) =>
        found.map(({ labels, points }) => ({ name, unit: units[name], labels, stepSeconds, points })),
      );
    },
  };
}

/** From the platform if it stores series, otherwise from core's samples. */
async function readAllSeries(
  { db, clock, platform: { metrics } }: MetricsContext,
  appId: AppId,
  kinds: readonly MetricKind[],
  rangeSeconds: number,
): Promise<{ name: MetricKind; found: readonly AppSeries[] }[]> {
  const { stepSeconds, sampleSeconds } = resolutionOf(rangeSeconds);
  const step = stepSeconds * 1000;
  const to = clock.now();
  const from = new Date(Math.ceil((to.getTime() - rangeSeconds * 1000) / step) * step);
  if (metrics.kind === 'usage') {
    const rows = await readSamples(db, { appId, sampleSeconds, stepSeconds, from });
    return kinds.map((name) => ({ name, found: seriesOfSamples(name, rows) }));
  }
  const reading = kinds.map(async (kind) => ({
    name: kind,
    found: await metrics.readSeries({ appId, kind, from, to, stepSeconds }),
  }));
  return Promise.all(reading);
}
