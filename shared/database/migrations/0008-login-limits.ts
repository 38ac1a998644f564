import { type Kysely, sql } from 'kysely';

/** A row a failed login: there are ten a quarter of an hour at most. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create table login_failures (
    id bigint generated always as identity primary key,
    account text not null,
    source text not null,
    failed_at timestamptz(3) not null)`,
  `create index login_failures_newest on login_failures (account, source, failed_at)`,
  `create index login_failures_age on login_failures (failed_at)`,
  `create table login_sources (
    account text not null,
    source text not null,
    logged_in_at timestamptz(3) not null,
    primary key (account, source))`,
  `create index login_sources_age on login_sources (logged_in_at)`,
];
