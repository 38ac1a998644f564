import { type JSONColumnType, sql } from 'kysely';
import type { TrafficReading, UsageReading } from '#shared/core/telemetry/usage-sample.ts';
import type { Db, Tables } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** What a process type of an app used and answered in `step_seconds` from `ts` on. Columns are sums, `memory_bytes` is a maximum. */
    app_samples: {
      app_id: AppId;
      step_seconds: number;
      ts: Date;
      process_type: string;
      seconds: number;
      cpu_seconds: number;
      memory_bytes: number;
      requests: number;
      errors: number;
      milliseconds: number;
      /** Requests by bucket of shared/platform/latencies.ts, without the empty ones at the end. */
      latencies: number[];
    };
    /** The counters as they were last read, by instance and by release version: the next sample is the difference. */
    app_readings: {
      app_id: AppId;
      read_at: Date;
      cpu: JSONColumnType<Record<string, number>>;
      traffic: JSONColumnType<Record<string, TrafficReading>>;
    };
  }
}

export type AppSampleRow = Tables['app_samples'];

/** Rows in one statement: PostgreSQL takes 65,535 parameters, a row has 11. */
const rowsAtOnce = 1000;

/** Adds samples to those of the same app, time and type: sums are added, of memory the maximum is stored. */
export async function addSamples(trx: Db, samples: readonly AppSampleRow[]): Promise<void> {
  for (let from = 0; from < samples.length; from += rowsAtOnce) {
    await trx
      .insertInto('app_samples')
      .values(samples.slice(from, from + rowsAtOnce))
      .onConflict((conflict) =>
        conflict.columns(['app_id', 'step_seconds', 'ts', 'process_type']).doUpdateSet({
          seconds: sql`app_samples.seconds + excluded.seconds`,
          cpu_seconds: sql`app_samples.cpu_seconds + excluded.cpu_seconds`,
          memory_bytes: sql`greatest(app_samples.memory_bytes, excluded.memory_bytes)`,
          requests: sql`app_samples.requests + excluded.requests`,
          errors: sql`app_samples.errors + excluded.errors`,
          milliseconds: sql`app_samples.milliseconds + excluded.milliseconds`,
          latencies: sql`array(select coalesce(stored, 0) + coalesce(added, 0)
            from unnest(app_samples.latencies, excluded.latencies) with ordinality as both_counts (stored, added, bucket) order by bucket)`,
        }),
      )
      .execute();
  }
}

/** An app and its counters as they were last read; undefined when they never were. */
export interface AppReading {
  appId: AppId;
  reading: UsageReading | undefined;
}

/** Active apps that have a release, with their last reading. */
export async function listReadings(db: Db): Promise<AppReading[]> {
  const rows = await db
    .selectFrom('apps')
    .leftJoin('app_readings', 'app_readings.app_id', 'apps.id')
    .select(['apps.id', 'app_readings.read_at', 'app_readings.cpu', 'app_readings.traffic'])
    .where('apps.current_release_id', 'is not', null)
    .where('apps.deleted_at', 'is', null)
    .execute();
  return rows.map(({ id, read_at, cpu, traffic }) => ({
    appId: id,
    reading: read_at === null || cpu === null || traffic === null ? undefined : { at: read_at, cpu, traffic },
  }));
}

/** Replaces the readings of these apps. */
export async function saveReadings(trx: Db, readings: readonly { appId: AppId; reading: UsageReading }[]): Promise<void> {
  const rows = readings.map(({ appId, reading: { at, cpu, traffic } }) => ({
    app_id: appId,
    read_at: at,
    cpu: JSON.stringify(cpu),
    traffic: JSON.stringify(traffic),
  }));
  for (let from = 0; from < rows.length; from += rowsAtOnce) {
    await trx
      .insertInto('app_readings')
      .values(rows.slice(from, from + rowsAtOnce))
      .onConflict((conflict) =>
        conflict.column('app_id').doUpdateSet({
          read_at: sql`excluded.read_at`,
          cpu: sql`excluded.cpu`,
          traffic: sql`excluded.traffic`,
        }),
      )
      .execute();
  }
}

export interface SampleQuery {
  appId: AppId;
  /** Length of the stored samples, one of `sampleLengths`. */
  sampleSeconds: number;
  /** Length of the rows to return, a multiple of `sampleSeconds`. */
  stepSeconds: number;
  from: Date;
}

/** What an app's process types used and answered. */
export type UsageRow = Omit<AppSampleRow, 'app_id' | 'step_seconds'>;

/** Ordered by process type and time. */
export async function readSamples(db: Db, { appId, sampleSeconds, stepSeconds, from }: SampleQuery): Promise<UsageRow[]> {
  const { rows } = await sql<UsageRow>`
    with samples as (
      select *, date_bin(make_interval(secs => ${stepSeconds}), ts, timestamptz 'epoch') as step
      from app_samples where app_id = ${appId} and step_seconds = ${sampleSeconds} and ts >= ${from}
    ), buckets as (
      select process_type, step, bucket, sum(count)::float8 as count
      from samples, unnest(latencies) with ordinality as counted (count, bucket) group by 1, 2, 3
    ), latencies as (
      select process_type, step, array_agg(count order by bucket) as counts from buckets group by 1, 2
    ), sums as (
      select process_type, step, sum(seconds) as seconds, sum(cpu_seconds) as cpu_seconds, max(memory_bytes) as memory_bytes,
        sum(requests)::bigint as requests, sum(errors)::bigint as errors, sum(milliseconds) as milliseconds
      from samples group by 1, 2
    )
    select process_type, step as ts, seconds, cpu_seconds, memory_bytes, requests, errors, milliseconds,
      coalesce(counts, '{}') as latencies
    from sums left join latencies using (process_type, step) order by 1, 2`.execute(db);
  return rows;
}

/** Deletes samples of one length that are older than `before`. */
export async function deleteSamples(db: Db, stepSeconds: number, before: Date): Promise<void> {
  await db.deleteFrom('app_samples').where('step_seconds', '=', stepSeconds).where('ts', '<', before).execute();
}
