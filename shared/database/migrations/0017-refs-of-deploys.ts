import { type Kysely, sql } from 'kysely';

/** A push's refs move when its release is live, and the push is told why it is not. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql.raw(`alter table deploys add column ref_changes jsonb, add column failure text`).execute(db);
}
