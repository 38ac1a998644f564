import type { UsageRow } from '#shared/core/telemetry/samples-store.ts';
import { servingType } from '#shared/core/telemetry/usage-sample.ts';
import { latencyPercentile } from '#shared/platform/latencies.ts';
import type { AppSeries, MetricKind } from '#shared/platform/metrics.ts';

interface Presentation {
  /** Whether it is about requests: then only the process type that serves them has a series. */
  ofTraffic: boolean;
  lines: readonly Line[];
}

interface Line {
  /** Beside the process type. */
  labels?: Readonly<Record<string, string>>;
  /** Undefined: the step has no value. */
  value(row: UsageRow): number | undefined;
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
    ofTraffic: false,
    lines: [{ value: (row) => (row.seconds > 0 ? round(row.cpu_seconds / row.seconds) : undefined) }],
  },
  memory: { ofTraffic: false, lines: [{ value: (row) => row.memory_bytes }] },
  requests: { ofTraffic: true, lines: [{ value: (row) => row.requests }] },
  errors: { ofTraffic: true, lines: [{ value: (row) => row.errors }] },
  latency: {
    ofTraffic: true,
    lines: [percentile('p50', 0.5), percentile('p95', 0.95), percentile('p99', 0.99), mean],
  },
};

/** The series of one kind, computed from samples, as a platform that stores series itself would return them. */
export function seriesOfSamples(kind: MetricKind, rows: readonly UsageRow[]): AppSeries[] {
  const { ofTraffic, lines } = presentations[kind];
  const byType = Map.groupBy(rows, (row) => row.process_type);
  return [...byType].flatMap(([type, steps]) => {
    if (ofTraffic && type !== servingType) return [];
    return lines.map(({ labels, value }) => {
      const points = steps.flatMap((row) => {
        const measured = value(row);
        return measured === undefined ? [] : [[row.ts, measured] as const];
      });
      return { labels: { process: type, ...labels }, points };
    });
  });
}

/** To 4 decimals: further ones are noise. */
function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}
