import { type Kysely, sql } from 'kysely';

/** The folder of its source that an app is built of. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table app_settings add column directory text').execute(db);
}
