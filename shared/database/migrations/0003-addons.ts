import { type Kysely, sql } from 'kysely';

export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table app_addons (
    app_id uuid not null references apps on delete cascade,
    addon_type text not null,
    plan text not null,
    status text not null check (status in ('creating', 'Ready', 'Creating', 'Failed')),
    password text not null,
    credentials text,
    generation int not null default 1,
    changed_by text not null,
    created_at timestamptz(3) not null default now(),
    updated_at timestamptz(3) not null default now(),
    removed_at timestamptz(3),
    primary key (app_id, addon_type))`,
];
