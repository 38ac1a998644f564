import { type Kysely, sql } from 'kysely';

/** When the image of a release was given up for deletion, because newer releases have taken its place. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table releases add column image_collected_at timestamptz`.execute(db);
}
