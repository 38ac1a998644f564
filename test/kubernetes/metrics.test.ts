import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { connectPrometheus, type Prometheus } from '#shared/platform/kubernetes/metrics/prometheus.ts';
import { readRolloutTraffic } from '#shared/platform/kubernetes/metrics/rollout-traffic.ts';
import { createPrometheusMetrics } from '#shared/platform/kubernetes/metrics/series-metrics.ts';
import type { MetricKind } from '#shared/platform/metrics.ts';
import { istioTraffic } from '#shared/platform/traffic-metrics.ts';
import { hasPrometheus, startPrometheus } from './cluster/start-prometheus.ts';

/** What cAdvisor, kube-state-metrics and Istio's gateway expose of an app with two process types, at so many seconds of its life. */
function expose(appId: AppId, seconds: number): string {
  const requests = (service: string, code: number, value: number): string =>
    `istio_requests_total{destination_service_name="${service}",response_code="${code}"} ${value}`;
  const pod = (type: string): string => `namespace="tenant-a",pod="app-${appId}-${type}"`;
  const duration = `istio_request_duration_milliseconds`;
  const service = `destination_service_name="app-${appId}"`;
  return [
    ...['web', 'worker'].flatMap((type) => [
      `kube_pod_labels{${pod(type)},label_app_id="${appId}",label_process_type="${type}",label_app_kubernetes_io_component="process"} 1`,
      `container_cpu_usage_seconds_total{${pod(type)},container="process"} ${seconds * (type === 'web' ? 0.5 : 0.25)}`,
      `container_memory_working_set_bytes{${pod(type)},container="process"} ${type === 'web' ? 2_000_000 : 1_000_000}`,
    ]),
    requests(`app-${appId}`, 200, 10 * seconds),
    requests(`app-${appId}`, 503, seconds),
    requests(`app-${appId}-canary`, 200, 2 * seconds),
    requests(`app-${newUuid()}`, 200, 1000 * seconds),
    ...[
      ['10', 5],
      ['100', 10],
      ['+Inf', 11],
    ].map(([le, rate]) => `${duration}_bucket{${service},le="${le}"} ${Number(rate) * seconds}`),
    `${duration}_sum{${service}} ${330 * seconds}`,
    `${duration}_count{${service}} ${11 * seconds}`,
    '',
  ].join('\n');
}

describe.skipIf(!hasPrometheus)('with Prometheus (the package prometheus, or its path in PAAS_TEST_PROMETHEUS)', () => {
  const appId = newUuid<AppId>();
  const begun = Date.now();
  let prometheus: Prometheus;
  let stop: () => Promise<void>;
  beforeAll(async () => {
    const started = await startPrometheus(() => expose(appId, 1 + (Date.now() - begun) / 1000));
    stop = started.stop;
    prometheus = connectPrometheus(started.url);
  });
  afterAll(() => stop?.());

  async function read(kind: MetricKind): Promise<Record<string, number>> {
    const stepSeconds = 5;
    const to = new Date(Math.floor(Date.now() / 5000) * 5000);
    const from = new Date(to.getTime() - stepSeconds * 1000);
    const series = await createPrometheusMetrics(prometheus, istioTraffic).readSeries({ appId, kind, from, to, stepSeconds });
    for (const { points } of series) expect(points.map(([ts]) => ts)).toEqual([from]);
    return Object.fromEntries(
      series.map(({ labels, points }) => [Object.values(labels).join(' '), Math.round((points[0]?.[1] ?? 0) * 100) / 100]),
    );
  }

  it.each<[MetricKind, Record<string, unknown>]>([
    ['cpu', { web: expect.closeTo(0.5, 1), worker: expect.closeTo(0.25, 1) }],
    ['memory', { web: 2_000_000, worker: 1_000_000 }],
    ['requests', { web: expect.closeTo(65, -1) }],
    ['errors', { web: expect.closeTo(5, 0) }],
    ['latency', { 'web p50': expect.closeTo(19, 0), 'web p95': 100, 'web p99': 100, 'web mean': expect.closeTo(30, 0) }],
  ])('reads the series of %s, one for each process type', async (kind, expected) => {
    await expect.poll(() => read(kind), { interval: 1000 }).toEqual(expected);
  });

  it('counts the requests to the releases of a rollout, and knows whether anybody visits', async () => {
    await expect.poll(async () => (await readRolloutTraffic(prometheus, istioTraffic, appId)).secondsSinceRequest).toBe(0);
    const { traffic } = await readRolloutTraffic(prometheus, istioTraffic, appId);
    expect(traffic.candidate.errors).toBe(0);
    expect(traffic.stable.requests / traffic.candidate.requests).toBeCloseTo(5.5, 0);
    expect(traffic.stable.errors).toBeGreaterThan(0);
    expect(traffic.stable.totalMilliseconds / traffic.stable.requests).toBeCloseTo(30, 0);
    const counted = traffic.stable.latencies.reduce((sum, count) => sum + count, 0);
    expect(counted).toBeCloseTo(traffic.stable.requests, 3);
  });

  it('reports nothing of an app that nobody has counted', async () => {
    const unknown = newUuid<AppId>();
    const to = new Date();
    const query = { appId: unknown, kind: 'requests' as const, from: new Date(to.getTime() - 60_000), to, stepSeconds: 10 };
    expect(await createPrometheusMetrics(prometheus, istioTraffic).readSeries(query)).toEqual([]);
    expect(await readRolloutTraffic(prometheus, istioTraffic, unknown)).toMatchObject({
      traffic: { candidate: { requests: 0 }, stable: { requests: 0 } },
      secondsSinceRequest: Number.POSITIVE_INFINITY,
    });
  });
});
