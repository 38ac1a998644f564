import { type Kysely, sql } from 'kysely';

/** Whether add-ons also set what clients read by themselves, as REDIS_URL and PGHOST. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('alter table app_settings add column client_variables boolean').execute(db);
}
