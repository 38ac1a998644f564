import { type Kysely, sql } from 'kysely';

/** How far the log of a build has come, in the numbers of the platform's lines: where a watch of it goes on. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table builds add column platform_line integer not null default 0`).execute(db);
}
