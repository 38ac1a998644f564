import type { CallerContext } from '#shared/core/accounts/principals.ts';
import { requireApp } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import { resolutionOf } from '#shared/core/telemetry/metric-range.ts';
import { readSamples } from '#shared/core/telemetry/samples-store.ts';
import type { AppMetrics, MetricKind, MetricPoint, MetricSeries } from '#shared/core/telemetry/telemetry.ts';
import { servingType } from '#shared/core/telemetry/usage-sample.ts';
import { latencyPercentile } from '#shared/platform/latencies.ts';

export const metricKinds = ['cpu', 'memory', 'requests', 'errors', 'latency'] as const satisfies readonly MetricKind[];

type Row = Awaited<ReturnType<typeof readSamples>>[number];

interface Presentation {
  unit: string;
  /** Of requests: only the type that they go to has such a series. */
  ofTraffic: boolean;
  lines: readonly Line[];
}

interface Line {
  /** Beside the process type. */
  labels?: Readonly<Record<string, string>>;
  /** Undefined: there is nothing to say of that step. */
  value(row: Row): number | undefined;
}

const mean: Line = {
  labels: { statistic: 'mean' },
  value: (row) => (row.requests > 0 ? round(row.milliseconds / row.requests) : undefined),
};

function percentile(name: string, share: number): Line {
  return {
    labels: { statistic: name },
    value: (row) => {
      const milliseconds = latencyPercentile(row.latencies, share);
      return milliseconds === undefined ? undefined : round(milliseconds);
    },
  };
}

const presentations: Record<MetricKind, Presentation> = {
  cpu: {
    unit: 'cores',
    ofTraffic: false,
    lines: [{ value: (row) => (row.seconds > 0 ? round(row.cpu_seconds / row.seconds) : undefined) }],
  },
  memory: { unit: 'bytes', ofTraffic: false, lines: [{ value: (row) => row.memory_bytes }] },
  requests: { unit: 'requests', ofTraffic: true, lines: [{ value: (row) => row.requests }] },
  errors: { unit: 'requests', ofTraffic: true, lines: [{ value: (row) => row.errors }] },
  latency: {
    unit: 'milliseconds',
    ofTraffic: true,
    lines: [percentile('p50', 0.5), percentile('p95', 0.95), percentile('p99', 0.99), mean],
  },
};

export function createAppMetrics(context: CallerContext & Pick<Context, 'clock'>): AppMetrics {
  const { db, clock } = context;
  return {
    async readMetrics(caller, app, { kind, rangeSeconds }) {
      const { id } = (await requireApp(context, caller, app)).row;
      const { stepSeconds, sampleSeconds } = resolutionOf(rangeSeconds);
      const step = stepSeconds * 1000;
      const from = new Date(Math.ceil((clock.now().getTime() - rangeSeconds * 1000) / step) * step);
      const rows = await readSamples(db, { appId: id, sampleSeconds, stepSeconds, from });
      return (kind === undefined ? metricKinds : [kind]).flatMap((each) => toSeries(each, rows, stepSeconds));
    },
  };
}

function toSeries(kind: MetricKind, rows: readonly Row[], stepSeconds: number): MetricSeries[] {
  const { unit, ofTraffic, lines } = presentations[kind];
  const byType = Map.groupBy(rows, (row) => row.process_type);
  return [...byType].flatMap(([type, steps]) => {
    if (ofTraffic && type !== servingType) return [];
    return lines.map(({ labels, value }) => {
      const points = steps.flatMap((row): MetricPoint[] => {
        const measured = value(row);
        return measured === undefined ? [] : [[row.ts, measured]];
      });
      return { name: kind, unit, labels: { process: type, ...labels }, stepSeconds, points };
    });
  });
}

/** To 4 decimals: what is beyond is noise. */
function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
