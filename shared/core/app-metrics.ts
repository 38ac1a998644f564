import { requireApp } from '#shared/core/authorization.ts';
import type { Context } from '#shared/core/context.ts';
import { resolutionOf } from '#shared/core/metric-range.ts';
import type { AppMetrics, MetricKind, MetricPoint, MetricSeries } from '#shared/core/services.ts';
import { servingType } from '#shared/core/usage-sample.ts';
import { readSamples } from '#shared/database/app-samples.ts';

export const metricKinds = ['cpu', 'memory', 'requests', 'errors', 'latency'] as const satisfies readonly MetricKind[];

type Row = Awaited<ReturnType<typeof readSamples>>[number];

interface Presentation {
  unit: string;
  /** Of requests: only the type that they go to has such a series. */
  ofTraffic: boolean;
  /** Undefined: there is nothing to say of that step. */
  value(row: Row): number | undefined;
}

const presentations: Record<MetricKind, Presentation> = {
  cpu: { unit: 'cores', ofTraffic: false, value: (row) => (row.seconds > 0 ? round(row.cpu_seconds / row.seconds) : undefined) },
  memory: { unit: 'bytes', ofTraffic: false, value: (row) => row.memory_bytes },
  requests: { unit: 'requests', ofTraffic: true, value: (row) => row.requests },
  errors: { unit: 'requests', ofTraffic: true, value: (row) => row.errors },
  latency: {
    unit: 'milliseconds',
    ofTraffic: true,
    value: (row) => (row.requests > 0 ? round(row.milliseconds / row.requests) : undefined),
  },
};

export function createAppMetrics({ db, clock }: Pick<Context, 'db' | 'clock'>): AppMetrics {
  return {
    async readMetrics(principal, app, { kind, rangeSeconds }) {
      const { id } = await requireApp(db, principal, app);
      const { stepSeconds, sampleSeconds } = resolutionOf(rangeSeconds);
      const step = stepSeconds * 1000;
      const from = new Date(Math.ceil((clock.now().getTime() - rangeSeconds * 1000) / step) * step);
      const rows = await readSamples(db, { appId: id, sampleSeconds, stepSeconds, from });
      return (kind === undefined ? metricKinds : [kind]).flatMap((each) => toSeries(each, rows, stepSeconds));
    },
  };
}

function toSeries(kind: MetricKind, rows: readonly Row[], stepSeconds: number): MetricSeries[] {
  const { unit, ofTraffic, value } = presentations[kind];
  const byType = new Map<string, MetricPoint[]>();
  for (const row of rows) {
    if (ofTraffic && row.process_type !== servingType) continue;
    const points = byType.get(row.process_type) ?? [];
    byType.set(row.process_type, points);
    const measured = value(row);
    if (measured !== undefined) points.push([row.ts, measured]);
  }
  return [...byType].map(([type, points]) => ({ name: kind, unit, labels: { process: type }, stepSeconds, points }));
}

/** To 4 decimals: what is beyond is noise. */
function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
