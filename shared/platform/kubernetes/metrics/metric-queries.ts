import type { AppId } from '#shared/ids.ts';
import type { MetricKind } from '#shared/platform/metrics.ts';
import type { TrafficMetrics } from '#shared/platform/traffic-metrics.ts';
import { appObjectName } from '../names.ts';

/** PromQL selector of what the gateway counted for Services. @param services a regular expression of their names */
export const selectTraffic = (traffic: TrafficMetrics, services: string): string => `{${matchServices(traffic, services)}}`;

/** PromQL selector of the answers among it that are errors. */
export const selectErrors = (traffic: TrafficMetrics, services: string): string =>
  `{${matchServices(traffic, services)},${traffic.statusLabel}=~"${traffic.errorStatuses}"}`;

/** Regular expression of the names of an app's Services for visitors. */
export const bothServices = (appId: AppId): string => `${appObjectName(appId)}(-canary)?`;

const matchServices = ({ serviceLabel, servicePattern }: TrafficMetrics, services: string): string =>
  `${serviceLabel}=~"${servicePattern.replace('SERVICE', services)}"`;

/** A query, and the labels that its series get beside `process`. */
export interface MetricQuery {
  query: string;
  /** What a value is multiplied by. */
  factor: number;
  statistic?: string;
}

/** Time series of the containers of an app's processes: the pods' labels come from kube-state-metrics. */
const perProcess = (expression: string, appId: AppId): string =>
  `sum by (label_process_type) (${expression} * on (namespace, pod) group_left (label_process_type) ` +
  `max by (namespace, pod, label_process_type) (kube_pod_labels{label_app_id="${appId}",label_app_kubernetes_io_component="process"}))`;

/** What series of a kind are made of: a value for each step, over the time of that step. */
export function planMetricQueries(
  { appId, kind, stepSeconds }: { appId: AppId; kind: MetricKind; stepSeconds: number },
  traffic: TrafficMetrics,
): MetricQuery[] {
  const step = `${stepSeconds}s`;
  // Without it a subquery has a value a minute.
  const resolution = Math.max(1, Math.floor(stepSeconds / 10));
  const requests = selectTraffic(traffic, bothServices(appId));
  const errors = selectErrors(traffic, bothServices(appId));
  const { millisecondsPerUnit: factor } = traffic;
  switch (kind) {
    case 'cpu':
      return [
        {
          query: perProcess(
            `sum by (namespace, pod) (rate(container_cpu_usage_seconds_total{container="process"}[${step}]))`,
            appId,
          ),
          factor: 1,
        },
      ];
    case 'memory':
      return [
        {
          query: `max_over_time((${perProcess('sum by (namespace, pod) (container_memory_working_set_bytes{container="process"})', appId)})[${step}:${resolution}s])`,
          factor: 1,
        },
      ];
    case 'requests':
      return [{ query: `sum(increase(${traffic.requests}${requests}[${step}]))`, factor: 1 }];
    case 'errors':
      return [{ query: `sum(increase(${traffic.requests}${errors}[${step}]))`, factor: 1 }];
    case 'latency': {
      const buckets = `sum by (le) (increase(${traffic.durations}_bucket${requests}[${step}]))`;
      const mean = `sum(increase(${traffic.durations}_sum${requests}[${step}])) / sum(increase(${traffic.durations}_count${requests}[${step}]))`;
      return [
        ...[50, 95, 99].map((percent) => ({
          query: `histogram_quantile(${percent / 100}, ${buckets})`,
          factor,
          statistic: `p${percent}`,
        })),
        { query: mean, factor, statistic: 'mean' },
      ];
    }
  }
}
