import type { AppUsage } from '#shared/platform/metrics.ts';

/** The process type that serves requests. */
export const servingType = 'web';

/** Counters of the requests to one release. */
export interface TrafficReading {
  requests: number;
  errors: number;
  /** Sum of the times that the requests took. */
  milliseconds: number;
  /** Requests by bucket of shared/platform/latencies.ts; readings of older versions have none. */
  latencies?: readonly number[];
}

/** Counters of an app at one time. */
export interface UsageReading {
  at: Date;
  /** Processor seconds by run of an instance. */
  cpu: Readonly<Record<string, number>>;
  /** By release version. */
  traffic: Readonly<Record<string, TrafficReading>>;
}

/** What a process type of an app did between two readings. */
export interface UsageSample {
  type: string;
  /** Between the readings. */
  seconds: number;
  cpuSeconds: number;
  /** At the second reading, of all instances together. */
  memoryBytes: number;
  requests: number;
  errors: number;
  /** Sum of the times that the requests took. */
  milliseconds: number;
  /** Requests by bucket of shared/platform/latencies.ts, without the empty ones at the end. */
  latencies: readonly number[];
}

/**
 * The difference between the counters now and at the reading before. It includes what happened while no reading took place.
 * For an app without a reading before, it is all that was counted so far.
 * @param usualSeconds the length of the sample when there is no reading before
 */
export function sampleUsage(
  before: UsageReading | undefined,
  usage: AppUsage,
  now: Date,
  usualSeconds: number,
): { samples: readonly UsageSample[]; reading: UsageReading } {
  const seconds = before === undefined ? usualSeconds : Math.max((now.getTime() - before.at.getTime()) / 1000, 0);
  const byType = new Map<string, UsageSample>();
  const sampleOf = (type: string): UsageSample => {
    const sample = byType.get(type) ?? { ...nothing, type, seconds };
    byType.set(type, sample);
    return sample;
  };
  for (const { run, type, cpuSeconds, memoryBytes } of usage.instances) {
    const sample = sampleOf(type);
    // When a child process ends that its parent did not wait for, its time is lost. Less than before counts as none.
    sample.cpuSeconds += Math.max(cpuSeconds - (before?.cpu[run] ?? 0), 0);
    sample.memoryBytes += memoryBytes;
  }
  const traffic: Record<string, TrafficReading> = {};
  for (const { releaseVersion, requests, errors, totalMilliseconds, latencies } of usage.traffic) {
    const counts = { requests, errors, milliseconds: totalMilliseconds, latencies };
    traffic[releaseVersion] = counts;
    const difference = subtract(counts, before?.traffic[releaseVersion]);
    if (difference.requests === 0) continue;
    const sample = sampleOf(servingType);
    sample.requests += difference.requests;
    sample.errors += difference.errors;
    sample.milliseconds += difference.milliseconds;
    sample.latencies = withoutEmptyEnd(addCounts(sample.latencies, difference.latencies));
  }
  const cpu = Object.fromEntries(usage.instances.map(({ run, cpuSeconds }) => [run, cpuSeconds]));
  return { samples: [...byType.values()], reading: { at: now, cpu, traffic } };
}

const nothing = { cpuSeconds: 0, memoryBytes: 0, requests: 0, errors: 0, milliseconds: 0, latencies: [] as readonly number[] };

/** A count that is lower than before started again at zero. */
function subtract(now: Required<TrafficReading>, before: TrafficReading | undefined): Required<TrafficReading> {
  if (before === undefined || now.requests < before.requests) return now;
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    milliseconds: now.milliseconds - before.milliseconds,
    // Without the counts of the reading before it is unknown how many are new.
    latencies: before.latencies === undefined ? [] : addCounts(now.latencies, before.latencies, -1),
  };
}

/** Bucket by bucket; `factor` is -1 to subtract. */
function addCounts(counts: readonly number[], others: readonly number[], factor = 1): number[] {
  const length = Math.max(counts.length, others.length);
  return Array.from({ length }, (_, bucket) => (counts[bucket] ?? 0) + factor * (others[bucket] ?? 0));
}

function withoutEmptyEnd(counts: readonly number[]): readonly number[] {
  return counts.slice(0, counts.findLastIndex((count) => count !== 0) + 1);
}
