/**
 * Port: what apps use and how much traffic they get. A driver offers one of two kinds: counters of this moment, which
 * core/telemetry samples every ten seconds and keeps, or series over time, which something else on the platform keeps.
 */
import type { AppId } from '#shared/ids.ts';
import type { ReleaseTraffic } from '#shared/platform/traffic.ts';

/** Core asks for the kind, never for the driver. */
export type Metrics = UsageMetrics | SeriesMetrics;

/** One machine: the counters of the kernel and of the gateway. */
export interface UsageMetrics {
  readonly kind: 'usage';
  /** What the app's instances use, and what reached it. Nothing of either for an app that does not run. */
  readUsage(appId: AppId): Promise<AppUsage>;
}

/** Kubernetes: queries of Prometheus. */
export interface SeriesMetrics {
  readonly kind: 'series';
  /** One series a process type, and a statistic where there are several. Empty for an app that did not run then. */
  readSeries(query: SeriesQuery): Promise<readonly AppSeries[]>;
}

/** What is measured. */
export const metricKinds = ['cpu', 'memory', 'requests', 'errors', 'latency'] as const;
/** One of `metricKinds`. */
export type MetricKind = (typeof metricKinds)[number];

/** Which series, from when to when. */
export interface SeriesQuery {
  appId: AppId;
  kind: MetricKind;
  /** Begins a step. */
  from: Date;
  to: Date;
  stepSeconds: number;
}

/** Values of one process type over time. */
export interface AppSeries {
  /** `process`, the type; of 'latency' also `statistic`: p50, p95, p99 or mean. */
  labels: Readonly<Record<string, string>>;
  /**
   * The time at which a step begins, and the value over that step, in the order of time: 'cpu' in cores, 'memory' in bytes
   * (the most of the step, all instances together), 'requests' and 'errors' in the step, 'latency' in milliseconds. Steps
   * without a value are left out.
   */
  points: readonly (readonly [ts: Date, value: number])[];
}

/** Counters of one app at one time. */
export interface AppUsage {
  instances: readonly InstanceUsage[];
  /** Of every release that had a route lately. A count that is lower than at the last reading has begun at zero again. */
  traffic: readonly ReleaseTraffic[];
}

/** Counters of one instance. */
export interface InstanceUsage {
  /** Names this run of the instance; another one after each start. */
  run: string;
  type: string;
  /** Processor time since the run began. */
  cpuSeconds: number;
  /** In memory now, without cached files that the system would give back. */
  memoryBytes: number;
}
