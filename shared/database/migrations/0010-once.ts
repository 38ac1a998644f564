import { type Kysely, sql } from 'kysely';

/** What a keyed request makes has an id from before it is made: sent again after a crash, it finds what was made. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table idempotency_keys add column resource_id uuid not null default gen_random_uuid()`.execute(db);
}
