import { type Kysely, sql } from 'kysely';

/** Tokens that read private repositories, and what became of the last deliveries about an app. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table source_tokens (
    app_id uuid primary key references apps on delete cascade,
    origin text not null,
    user_name text not null,
    token text not null)`,
  `create table source_deliveries (
    id bigint primary key generated always as identity,
    app_id uuid not null references apps on delete cascade,
    provider text not null,
    delivery_id text not null,
    event text not null,
    outcome text not null,
    message text not null,
    received_at timestamptz not null)`,
  `create index on source_deliveries (app_id, id)`,
];
