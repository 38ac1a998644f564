import type { AppId } from '#shared/ids.ts';
import type { AppSeries, MetricKind, SeriesMetrics, SeriesQuery, UsageMetrics } from '#shared/platform/metrics.ts';
import type { FakeApps } from './app-workload.ts';

/** Counters that a test adds to. */
export interface FakeUsageMetrics extends UsageMetrics {
  /** The instance works for so long more, and has so much in memory from now on. */
  use(appId: AppId, name: string, usage: { cpuSeconds: number; memoryBytes: number }): void;
}

/** What an instance uses that was never given work. */
const idle = { cpuSeconds: 0, memoryBytes: 20 * 1024 * 1024 };

/** Counters of this moment, as a single machine has them. */
export function createFakeUsageMetrics({ apps, router }: Pick<FakeApps, 'apps' | 'router'>): FakeUsageMetrics {
  const used = new Map<string, { cpuSeconds: number; memoryBytes: number }>();
  return {
    kind: 'usage',
    async readUsage(appId) {
      const traffic = [...(await router.readPastTraffic(appId)), ...(await router.readTraffic(appId))];
      const instances = apps.get(appId)?.instances ?? [];
      return { instances: instances.map(({ key, type }) => ({ run: key, type, ...idle, ...used.get(key) })), traffic };
    },
    use(appId, name, usage) {
      const instance = apps.get(appId)?.instances.find((candidate) => candidate.name === name);
      if (instance === undefined) return;
      const { cpuSeconds } = used.get(instance.key) ?? idle;
      used.set(instance.key, { cpuSeconds: cpuSeconds + usage.cpuSeconds, memoryBytes: usage.memoryBytes });
    },
  };
}

/** Series that a test sets. */
export interface FakeSeriesMetrics extends SeriesMetrics {
  /** From now on the app has these series. */
  setSeries(appId: AppId, kind: MetricKind, series: readonly AppSeries[]): void;
  /** What was asked so far. */
  readonly queries: readonly SeriesQuery[];
}

/** Series that something else keeps, as a cluster with Prometheus has them. */
export function createFakeSeriesMetrics(): FakeSeriesMetrics {
  const known = new Map<string, readonly AppSeries[]>();
  const queries: SeriesQuery[] = [];
  return {
    kind: 'series',
    queries,
    async readSeries(query) {
      queries.push(query);
      const series = known.get(`${query.appId} ${query.kind}`) ?? [];
      return series.map(({ labels, points }) => ({
        labels,
        points: points.filter(([ts]) => ts >= query.from && ts < query.to),
      }));
    },
    setSeries(appId, kind, series) {
      known.set(`${appId} ${kind}`, series);
    },
  };
}
