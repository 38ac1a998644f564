import type { TrafficReading } from '#shared/database/schema.ts';
import type { AppUsage } from '#shared/platform/platform.ts';

/** The process type that requests go to. */
export const servingType = 'web';

/** Counters of an app as they stood at a time. */
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
    const sample = byType.get(type) ?? { type, seconds, cpuSeconds: 0, memoryBytes: 0, requests: 0, errors: 0, milliseconds: 0 };
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
  for (const { releaseVersion, requests, errors, totalMilliseconds } of usage.traffic) {
    const counts = { requests, errors, milliseconds: totalMilliseconds };
    traffic[releaseVersion] = counts;
    const difference = subtract(counts, before?.traffic[releaseVersion]);
    if (difference.requests === 0) continue;
    const sample = sampleOf(servingType);
    sample.requests += difference.requests;
    sample.errors += difference.errors;
    sample.milliseconds += difference.milliseconds;
  }
  const cpu = Object.fromEntries(usage.instances.map(({ run, cpuSeconds }) => [run, cpuSeconds]));
  return { samples: [...byType.values()], reading: { at: now, cpu, traffic } };
}

/** A count that fell began anew at zero. */
function subtract(now: TrafficReading, before: TrafficReading | undefined): TrafficReading {
  if (before === undefined || now.requests < before.requests) return now;
  return {
    requests: now.requests - before.requests,
    errors: now.errors - before.errors,
    milliseconds: now.milliseconds - before.milliseconds,
  };
}
