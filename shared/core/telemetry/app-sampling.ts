import type { Context } from '#shared/core/context.ts';
import { keptSteps } from '#shared/core/telemetry/metric-range.ts';
import {
  type AppSampleRow,
  addSamples,
  deleteSamples,
  listReadings,
  saveReadings,
} from '#shared/core/telemetry/samples-store.ts';
import { sampleUsage, type UsageReading, type UsageSample } from '#shared/core/telemetry/usage-sample.ts';
import type { AppId } from '#shared/ids.ts';
import type { UsageMetrics } from '#shared/platform/metrics.ts';
import type { Platform } from '#shared/platform/platform.ts';

export type SamplingContext = Pick<Context, 'db' | 'clock' | 'log'> & { platform: Pick<Platform, 'metrics'> };

const samplingSeconds = keptSteps[0].stepSeconds;

/** Apps that are read at the same time. */
const appsAtOnce = 16;

/**
 * Samples all apps every 10 s, on the tens of the clock, until the signal aborts. What a round that failed would have had is
 * in the next. Does nothing where the platform keeps series itself.
 */
export async function keepSampling(context: SamplingContext, signal: AbortSignal): Promise<void> {
  const { clock, log, platform } = context;
  if (platform.metrics.kind !== 'usage') return;
  const interval = samplingSeconds * 1000;
  for (;;) {
    await clock.sleep(interval - (clock.now().getTime() % interval), signal).catch(() => undefined);
    if (signal.aborted) return;
    await sampleApps(context).catch((error: unknown) => log.warn('The apps could not be sampled.', { error }));
  }
}

/** Reads every app that may run, and keeps the difference to the reading before, in one transaction with the new reading. */
export async function sampleApps(context: SamplingContext): Promise<void> {
  const { db, platform } = context;
  const { metrics } = platform;
  if (metrics.kind !== 'usage') return;
  const apps = await listReadings(db);
  const read: { appId: AppId; samples: readonly UsageSample[]; reading: UsageReading }[] = [];
  for (let from = 0; from < apps.length; from += appsAtOnce) {
    const some = apps.slice(from, from + appsAtOnce);
    const results = await Promise.all(
      some.map(({ appId, reading }) =>
        readApp(context, metrics, appId, reading && { at: reading.read_at, cpu: reading.cpu, traffic: reading.traffic }),
      ),
    );
    read.push(...results.filter((result) => result !== undefined));
  }
  await db.transaction().execute(async (trx) => {
    await addSamples(
      trx,
      read.flatMap(({ appId, samples, reading }) => samples.flatMap((sample) => toRows(appId, sample, reading.at))),
    );
    await saveReadings(
      trx,
      read.map(({ appId, reading }) => ({
        app_id: appId,
        read_at: reading.at,
        cpu: JSON.stringify(reading.cpu),
        traffic: JSON.stringify(reading.traffic),
      })),
    );
  });
}

/** Undefined when it cannot be read just now: the next reading has it all. */
async function readApp({ clock, log }: SamplingContext, metrics: UsageMetrics, appId: AppId, before: UsageReading | undefined) {
  try {
    const usage = await metrics.readUsage(appId);
    return { appId, ...sampleUsage(before, usage, clock.now(), samplingSeconds) };
  } catch (error) {
    log.debug('An app could not be sampled.', { appId, error });
    return undefined;
  }
}

/** One for each length that is kept: longer ranges are read from fewer rows, and nothing has to be summed up later. */
function toRows(appId: AppId, sample: UsageSample, at: Date): AppSampleRow[] {
  // The reading ends a step, and may be early or late by less than half of one.
  const within = at.getTime() - (samplingSeconds * 1000) / 2;
  return keptSteps.map(({ stepSeconds }) => ({
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

/** Removes samples that no range is made of any more. */
export async function sweepSamples({ db, clock }: Pick<Context, 'db' | 'clock'>): Promise<void> {
  for (const { stepSeconds, keptSeconds } of keptSteps)
    await deleteSamples(db, stepSeconds, new Date(clock.now().getTime() - keptSeconds * 1000));
}
