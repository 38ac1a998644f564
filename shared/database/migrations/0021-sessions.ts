import { type Kysely, sql } from 'kysely';

/**
 * A session is a family of refresh tokens: its newest token says where and when it began. Access tokens of an ended session are
 * refused until they expire.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `alter table refresh_tokens
    add column logged_in_at timestamptz(3) not null default now(),
    add column source text not null default '',
    add column client text not null default ''`,
  `update refresh_tokens set logged_in_at = begun.at
    from (select family_id, min(created_at) as at from refresh_tokens group by family_id) begun
    where begun.family_id = refresh_tokens.family_id`,
  `create index refresh_tokens_open on refresh_tokens (user_id) where used_at is null and revoked_at is null`,
  `create table ended_sessions (
    session_id text primary key,
    ended_at timestamptz(3) not null)`,
];
