import { type Kysely, sql } from 'kysely';

/** Requests by how long they took (shared/platform/latencies.ts); what was sampled before has none. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table app_samples add column latencies integer[] not null default '{}'`.execute(db);
}
