import { type Kysely, sql } from 'kysely';

/** A delivery is kept by its name, and a push by what it moved: a copy of a delivery under another name is still known. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table webhook_deliveries (
    provider text not null,
    delivery_id text not null,
    received_at timestamptz(3) not null default now(),
    primary key (provider, delivery_id))`,
  `create index webhook_deliveries_age on webhook_deliveries (received_at)`,
  `create table webhook_pushes (
    app_id uuid not null references apps on delete cascade,
    ref text not null,
    before text not null,
    after text not null,
    primary key (app_id, ref, before, after))`,
  `create table source_keys (
    app_id uuid primary key references apps on delete cascade,
    public_key text not null,
    private_key text not null,
    host_keys jsonb not null default '{}')`,
  `alter table builds add column source jsonb`,
];
