import { type Kysely, sql } from 'kysely';

/** Commands that somebody runs beside an app, while they run. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table runs (
    id uuid primary key,
    app_id uuid not null references apps on delete cascade,
    user_id text not null,
    seen_at timestamptz not null default now())`,
  `create index on runs (app_id)`,
];
