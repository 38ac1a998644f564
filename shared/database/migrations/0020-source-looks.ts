import { type Kysely, sql } from 'kysely';

/** A delivery of a webhook is a hint: which branches to ask the git host about, and what it answered last. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table source_hints (
    id bigint primary key generated always as identity,
    app_id uuid not null references apps on delete cascade,
    branch text not null,
    commit text,
    skips_build boolean not null,
    created_at timestamptz not null)`,
  `create index on source_hints (app_id)`,
  `create table source_looks (
    app_id uuid primary key references apps on delete cascade,
    url text not null,
    asked_at timestamptz not null,
    tips jsonb not null)`,
  `drop table webhook_pushes`,
];
