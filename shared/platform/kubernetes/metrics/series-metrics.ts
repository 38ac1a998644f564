import type { AppSeries, SeriesMetrics } from '#shared/platform/metrics.ts';
import type { TrafficMetrics } from '#shared/platform/traffic-metrics.ts';
import { planMetricQueries } from './metric-queries.ts';
import type { Prometheus } from './prometheus.ts';

/**
 * Series of apps from Prometheus: containers by cAdvisor and kube-state-metrics, requests by the gateway. A query at a time looks
 * back over one step, and the port names a step by its beginning, so each value is asked for at the end of its step.
 */
export function createPrometheusMetrics(prometheus: Prometheus, traffic: TrafficMetrics): SeriesMetrics {
  return {
    kind: 'series',
    async readSeries(query) {
      const { from, to, stepSeconds } = query;
      const first = from.getTime() / 1000 + stepSeconds;
      const last = to.getTime() / 1000;
      if (first > last) return [];
      const answers = planMetricQueries(query, traffic).map(async ({ query: text, factor, statistic }) => {
        const found = await prometheus.queryRange(text, first, last, stepSeconds);
        return found.flatMap(({ labels, points }): AppSeries[] => {
          const values = points
            .filter(([, value]) => Number.isFinite(value))
            .map(([seconds, value]) => [new Date((seconds - stepSeconds) * 1000), value * factor] as const);
          const process = labels['label_process_type'] ?? 'web';
          return values.length === 0
            ? []
            : [{ labels: { process, ...(statistic === undefined ? {} : { statistic }) }, points: values }];
        });
      });
      return (await Promise.all(answers)).flat();
    },
  };
}
