import type { AppId } from '#shared/ids.ts';
import { latencyBucket } from '#shared/platform/latencies.ts';
import type { TrafficFacts } from '#shared/platform/traffic.ts';
import type { TrafficMetrics } from '#shared/platform/traffic-metrics.ts';
import { appObjectName, canaryServiceName } from '../names.ts';
import type { RolloutTraffic } from '../workloads/rollout-facts.ts';
import { bothServices, selectErrors, selectTraffic } from './metric-queries.ts';
import type { Prometheus, PrometheusSeries } from './prometheus.ts';

/** Times that are looked back at for requests: Prometheus sees what the gateway counted at its last scrape. */
const recentSeconds = [60, 300];

/**
 * Requests to the two releases of an app, by the Services that lead to them. The counters are those of the Services, which outlive
 * releases: core subtracts what was there when a step began.
 */
export async function readRolloutTraffic(prometheus: Prometheus, traffic: TrafficMetrics, appId: AppId): Promise<RolloutTraffic> {
  const [candidate, stable, ...recent] = await Promise.all([
    readService(prometheus, traffic, canaryServiceName(appId)),
    readService(prometheus, traffic, appObjectName(appId)),
    ...recentSeconds.map((seconds) =>
      readSum(prometheus, `sum(increase(${traffic.requests}${selectTraffic(traffic, bothServices(appId))}[${seconds}s]))`),
    ),
  ]);
  const busy = recent.findIndex((requests) => requests > 0);
  const secondsSinceRequest = busy === -1 ? Number.POSITIVE_INFINITY : (recentSeconds[busy - 1] ?? 0);
  return { traffic: { candidate, stable }, secondsSinceRequest };
}

async function readService(prometheus: Prometheus, traffic: TrafficMetrics, service: string): Promise<TrafficFacts> {
  const all = selectTraffic(traffic, service);
  const failed = selectErrors(traffic, service);
  const [requests, errors, total, buckets] = await Promise.all([
    readSum(prometheus, `sum(${traffic.requests}${all})`),
    readSum(prometheus, `sum(${traffic.requests}${failed})`),
    readSum(prometheus, `sum(${traffic.durations}_sum${all})`),
    prometheus.query(`sum by (le) (${traffic.durations}_bucket${all})`),
  ]);
  const factor = traffic.millisecondsPerUnit;
  return { requests, errors, totalMilliseconds: total * factor, latencies: countLatencies(buckets, factor) };
}

async function readSum(prometheus: Prometheus, query: string): Promise<number> {
  const [series] = await prometheus.query(query);
  return series?.points[0]?.[1] ?? 0;
}

/** From a histogram, whose buckets count everything below their bound, to counts by the buckets of `latencies.ts`. */
function countLatencies(buckets: readonly PrometheusSeries[], factor: number): number[] {
  const bounds = buckets
    .map(({ labels, points }) => ({ bound: Number(labels['le']?.replace('+Inf', 'Infinity')), count: points[0]?.[1] ?? 0 }))
    .toSorted((a, b) => a.bound - b.bound);
  const counts: number[] = [];
  let below = 0;
  for (const { bound, count } of bounds) {
    const bucket = latencyBucket(bound * factor);
    while (counts.length <= bucket) counts.push(0);
    counts[bucket] = (counts[bucket] ?? 0) + count - below;
    below = count;
  }
  while (counts.at(-1) === 0) counts.pop();
  return counts;
}
