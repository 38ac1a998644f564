import { type Kysely, sql } from 'kysely';

/**
 * Since when an app is being purged. What the platform has of it is deleted outside of any transaction, so the row says
 * meanwhile that the app can no longer be restored.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table apps add column purge_begun_at timestamptz`).execute(db);
}
