import type { Tenant } from '#shared/core/accounts/principals.ts';
import type { CreatedAt, Db } from '#shared/database/db.ts';
import type { TenantId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    tenants: { id: TenantId; name: string; created_at: CreatedAt };
  }
}

/** Inserts a tenant. */
export async function insertTenant(db: Db, { id, name }: Tenant): Promise<void> {
  await db.insertInto('tenants').values({ id, name }).execute();
}

/** @throws when there is no such tenant */
export async function readTenant(db: Db, tenantId: TenantId): Promise<Tenant> {
  return db.selectFrom('tenants').select(['id', 'name']).where('id', '=', tenantId).executeTakeFirstOrThrow();
}

/** Undefined for an unknown id. */
export async function findTenant(db: Db, tenantId: TenantId): Promise<Tenant | undefined> {
  return db.selectFrom('tenants').select(['id', 'name']).where('id', '=', tenantId).executeTakeFirst();
}

/** The tenant that was created first, which is the operator's; undefined on a new platform. */
export async function readFirstTenantId(db: Db): Promise<TenantId | undefined> {
  const row = await db.selectFrom('tenants').select('id').orderBy('created_at').limit(1).executeTakeFirst();
  return row?.id;
}

/** Until the transaction ends, no other transaction gets this lock. Inserts that refer to the tenant are not blocked. */
export async function lockTenant(trx: Db, tenantId: TenantId): Promise<void> {
  await trx.selectFrom('tenants').select('id').where('id', '=', tenantId).forNoKeyUpdate().execute();
}
