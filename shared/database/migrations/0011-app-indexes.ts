import { type Kysely, sql } from 'kysely';

/**
 * Deleted apps are listed a tenant's at a time, and what may run is read every ten seconds: neither may cost more for what
 * else there is on the platform.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of statements) await sql.raw(statement).execute(db);
}

const statements = [
  `create index apps_of_tenant_deleted on apps (tenant_id, created_at desc, id desc) where deleted_at is not null`,
  `drop index apps_deleted`,
  `create index apps_released on apps (id) where current_release_id is not null and deleted_at is null`,
];
