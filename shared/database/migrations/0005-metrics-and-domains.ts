import { type Kysely, sql } from 'kysely';

/**
 * Build starts are counted by rows that are added and now and then summed up: a counter in one row would make all
 * builds wait for one another, and let two pushes that each start a cold and a warm build block each other for good.
 * Samples of apps are updated in place many times (a row of 5 minutes 30 times), so pages keep room for that.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table build_starts (
    cache_state text not null check (cache_state in ('cold', 'warm')),
    pipeline text not null,
    count bigint not null default 1)`,
  `insert into build_starts select lower(cache_state), pipeline, count(*) from builds group by 1, 2`,
  `create table app_samples (
    app_id uuid not null references apps on delete cascade,
    step_seconds smallint not null,
    ts timestamptz(0) not null,
    process_type text not null,
    seconds double precision not null,
    cpu_seconds double precision not null,
    memory_bytes bigint not null,
    requests bigint not null,
    errors bigint not null,
    milliseconds double precision not null,
    primary key (app_id, step_seconds, ts, process_type))
    with (fillfactor = 70)`,
  `create index app_samples_age on app_samples (step_seconds, ts)`,
  `create table app_readings (
    app_id uuid primary key references apps on delete cascade,
    read_at timestamptz(3) not null,
    cpu jsonb not null,
    traffic jsonb not null)
    with (fillfactor = 50)`,
  `create table domains (
    app_id uuid not null references apps on delete cascade,
    host text not null,
    status text not null check (status in ('pending', 'active', 'removing')),
    proof text not null,
    created_at timestamptz(3) not null default now(),
    primary key (app_id, host))`,
  `create unique index domains_taken on domains (host) where status <> 'pending'`,
];
