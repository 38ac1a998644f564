import type { AppUsage } from '#shared/platform/metrics.ts';

/** The process type that requests go to. */
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
  /** At the second one, of all instances. */
  memoryBytes: number;
  requests: number;
  errors: number;
  /** Sum of the times that the requests took. */
  milliseconds: number;
  /** Requests by bucket of shared/platform/latencies.ts, without the empty ones at the end. */
  latencies: readonly number[];
}

/**
 * The difference of what is read now and what was read before. What came while nobody read is in it; of an app that was
 * never read before it is all there was, in `usualSeconds`.
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
    // A process that nobody waited for takes its time with it when it ends: less than before is no time at all.
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

/** A count that fell began anew at zero. */
function subtract(now: Required<TrafficReading>, before: TrafficReading | undefined): Required<TrafficReading> {
  if (before === undefined || now.requests < before.requests) return now;
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    milliseconds: now.milliseconds - before.milliseconds,
    // Of a reading without them it is not known how much is new.
    latencies: before.latencies === undefined ? [] : addCounts(now.latencies, before.latencies, -1),
  };
}

/** Bucket by bucket; `times` is -1 to take the others away. */
function addCounts(counts: readonly number[], others: readonly number[], times = 1): number[] {
  const length = Math.max(counts.length, others.length);
  return Array.from({ length }, (_, bucket) => (counts[bucket] ?? 0) + times * (others[bucket] ?? 0));
}

function withoutEmptyEnd(counts: readonly number[]): readonly number[] {
  return counts.slice(0, counts.findLastIndex((count) => count !== 0) + 1);
}
