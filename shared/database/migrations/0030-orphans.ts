import { type Kysely, sql } from 'kysely';

/** Since when the platform has had objects of apps that are not in the database. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw('create table orphans (app_id uuid primary key, found_at timestamptz not null)').execute(db);
}
