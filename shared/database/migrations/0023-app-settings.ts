import { type Kysely, sql } from 'kysely';

/** How instances of an app start and how visitors reach them. What concerns the start belongs to each release. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table app_settings (
    app_id uuid primary key references apps on delete cascade,
    health_path text,
    health_timeout_seconds integer,
    boot_timeout_seconds integer,
    session_affinity boolean)`,
  `alter table releases add column boot jsonb not null default '{}'`,
];
