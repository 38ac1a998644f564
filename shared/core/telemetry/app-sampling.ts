import type { Context } from '#shared/core/context.ts';
import { sampleLengths } from '#shared/core/telemetry/metric-range.ts';
import {
  type AppReading,
  type AppSampleRow,
  addSamples,
  deleteSamples,
  listReadings,
  saveReadings,
} from '#shared/core/telemetry/samples-store.ts';
import { sampleUsage, type UsageReading, type UsageSample } from '#shared/core/telemetry/usage-sample.ts';
import { addSeconds, millisecondsPerSecond } from '#shared/durations.ts';
import type { AppId } from '#shared/ids.ts';
import type { UsageMetrics } from '#shared/platform/metrics.ts';
import type { Platform } from '#shared/platform/platform.ts';

/** What sampling needs. */
export type SamplingContext = Pick<Context, 'db' | 'clock' | 'log'> & { platform: Pick<Platform, 'metrics'> };

const samplingSeconds = sampleLengths[0].stepSeconds;

/** Number of apps that are read at the same time. */
const appsAtOnce = 16;

/**
 * Samples all apps every 10 s, at times that are multiples of 10 s, until the signal aborts. After a round that failed, the
 * next one includes what it missed. Does nothing where the platform stores series itself.
 */
export async function runSampling(context: SamplingContext, signal: AbortSignal): Promise<void> {
  const { clock, log, platform } = context;
  if (platform.metrics.kind !== 'usage') return;
  const interval = samplingSeconds * millisecondsPerSecond;
  for (;;) {
    await clock.sleep(interval - (clock.now().getTime() % interval), signal).catch(() => undefined);
    if (signal.aborted) return;
    await sampleApps(context).catch((error: unknown) => log.warn('The apps could not be sampled.', { error }));
  }
}

/** Reads every app that may run, and stores the difference to the reading before together with the new reading. */
export async function sampleApps(context: SamplingContext): Promise<void> {
  const { db, platform } = context;
  const { metrics } = platform;
  if (metrics.kind !== 'usage') return;
  const apps = await listReadings(db);
  const read: ReadApp[] = [];
  for (let from = 0; from < apps.length; from += appsAtOnce) {
    const some = apps.slice(from, from + appsAtOnce);
    const results = await Promise.all(some.map((app) => readApp(context, metrics, app)));
    read.push(...results.filter((result) => result !== undefined));
  }
  await db.transaction().execute(async (trx) => {
    await addSamples(
      trx,
      read.flatMap(({ appId, samples, reading }) => samples.flatMap((sample) => toRows(appId, sample, reading.at))),
    );
    await saveReadings(trx, read);
  });
}

/** An app that was read, and what it did since the reading before. */
interface ReadApp {
  appId: AppId;
  samples: readonly UsageSample[];
  reading: UsageReading;
}

/** Undefined when the app cannot be read now: the next reading will include it. */
async function readApp(
  { clock, log }: SamplingContext,
  metrics: UsageMetrics,
  { appId, reading: before }: AppReading,
): Promise<ReadApp | undefined> {
  try {
    const usage = await metrics.readUsage(appId);
    return { appId, ...sampleUsage(before, usage, clock.now(), samplingSeconds) };
  } catch (error) {
    log.debug('An app could not be sampled.', { appId, error });
    return undefined;
  }
}

/** One row for each sample length: long ranges are read from few rows, and nothing is aggregated later. */
function toRows(appId: AppId, sample: UsageSample, at: Date): AppSampleRow[] {
  // A reading ends a step, and is early or late by less than half a step.
  const within = at.getTime() - (samplingSeconds * millisecondsPerSecond) / 2;
  return sampleLengths.map(({ stepSeconds }) => ({
    app_id: appId,
    step_seconds: stepSeconds,
    ts: new Date(Math.floor(within / (stepSeconds * 1000)) * stepSeconds * 1000),
    process_type: sample.type,
    seconds: sample.seconds,
    cpu_seconds: sample.cpuSeconds,
    memory_bytes: Math.round(sample.memoryBytes),
    requests: sample.requests,
    errors: sample.errors,
    milliseconds: sample.milliseconds,
    latencies: [...sample.latencies],
  }));
}

/** Deletes samples that no range uses any more. */
export async function sweepSamples({ db, clock }: Pick<Context, 'db' | 'clock'>): Promise<void> {
  for (const { stepSeconds, retainedSeconds } of sampleLengths)
    await deleteSamples(db, stepSeconds, addSeconds(clock.now(), -retainedSeconds));
}
