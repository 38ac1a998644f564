import { type Kysely, sql } from 'kysely';

/** With which a build's own pipeline asks the control plane: for its source, once, and to report its end. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table build_tokens (
    token_hash text primary key,
    build_id uuid not null references builds on delete cascade,
    purpose text not null check (purpose in ('source', 'callback')),
    created_at timestamptz not null default now(),
    expires_at timestamptz not null,
    used_at timestamptz)`,
  `create index on build_tokens (build_id)`,
];
