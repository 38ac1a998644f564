import { type Insertable, type JSONColumnType, type Selectable, sql } from 'kysely';
import type { TrafficReading } from '#shared/core/telemetry/usage-sample.ts';
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
export type AppReadingRow = Selectable<Tables['app_readings']>;

/** Rows in one statement: PostgreSQL takes 65,535 parameters, a row has 11. */
const rowsAtOnce = 1000;

/** Adds to what is there for the same app, time and type: sums add up, of memory the most counts. */
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
          latencies: sql`array(select coalesce(kept, 0) + coalesce(added, 0)
            from unnest(app_samples.latencies, excluded.latencies) with ordinality as both_counts (kept, added, bucket) order by bucket)`,
        }),
      )
      .execute();
  }
}

/** Every active app that has a release, with its last reading where there is one. */
export async function listReadings(db: Db): Promise<{ appId: AppId; reading: AppReadingRow | undefined }[]> {
  const rows = await db
    .selectFrom('apps')
    .leftJoin('app_readings', 'app_readings.app_id', 'apps.id')
    .select(['apps.id', 'app_readings.read_at', 'app_readings.cpu', 'app_readings.traffic'])
    .where('apps.current_release_id', 'is not', null)
    .where('apps.deleted_at', 'is', null)
    .execute();
  return rows.map(({ id, read_at, cpu, traffic }) => ({
    appId: id,
    reading: read_at === null || cpu === null || traffic === null ? undefined : { app_id: id, read_at, cpu, traffic },
  }));
}

export async function saveReadings(trx: Db, readings: readonly Insertable<Tables['app_readings']>[]): Promise<void> {
  for (let from = 0; from < readings.length; from += rowsAtOnce) {
    await trx
      .insertInto('app_readings')
      .values(readings.slice(from, from + rowsAtOnce))
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
  /** Of the samples that are kept. */
  sampleSeconds: number;
  /** Of the rows that are wanted: a multiple. */
  stepSeconds: number;
  from: Date;
}

/** By process type and time. */
export async function readSamples(
  db: Db,
  { appId, sampleSeconds, stepSeconds, from }: SampleQuery,
): Promise<Omit<AppSampleRow, 'app_id' | 'step_seconds'>[]> {
  const { rows } = await sql<Omit<AppSampleRow, 'app_id' | 'step_seconds'>>`
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

export async function deleteSamples(db: Db, stepSeconds: number, before: Date): Promise<void> {
  await db.deleteFrom('app_samples').where('step_seconds', '=', stepSeconds).where('ts', '<', before).execute();
}
