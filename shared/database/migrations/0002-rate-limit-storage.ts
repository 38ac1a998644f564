import { type Kysely, sql } from 'kysely';

/**
 * A row of rate_limits is rewritten by every request. Without an index on the time of that, PostgreSQL updates it in
 * place where the page has room; stored plain, its array is neither compressed nor moved out (600 times are 4.8 KB, a
 * page takes 8 KB).
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `drop index rate_limits_updated`,
  `alter table rate_limits alter column hits set storage plain`,
  `alter table rate_limits set (fillfactor = 30, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
];
