import type { Db } from '#shared/database/db.ts';
import type { TenantId } from '#shared/ids.ts';
import { type QuotaName, type Quotas, quotaNames } from '#shared/settings/quotas.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** What the operator has changed for single tenants. Without a row the settings count. */
    tenant_quotas: { tenant_id: TenantId; name: string; amount: number };
    /** The builds of a tenant's last hour, also those of apps that are gone. */
    tenant_build_starts: { tenant_id: TenantId; started_at: Date };
  }
}

/** The quotas that differ from the settings. */
export async function readQuotaChanges(db: Db, tenantId: TenantId): Promise<Partial<Quotas>> {
  const rows = await db.selectFrom('tenant_quotas').select(['name', 'amount']).where('tenant_id', '=', tenantId).execute();
  const known = rows.filter(({ name }) => quotaNames.some((candidate) => candidate === name));
  return Object.fromEntries(known.map(({ name, amount }) => [name, amount]));
}

/** Changes a quota of one tenant. */
export async function setQuota(db: Db, tenantId: TenantId, name: QuotaName, amount: number): Promise<void> {
  await db
    .insertInto('tenant_quotas')
    .values({ tenant_id: tenantId, name, amount })
    .onConflict((conflict) => conflict.columns(['tenant_id', 'name']).doUpdateSet({ amount }))
    .execute();
}

/** Takes back what was changed for a tenant: the settings count again. */
export async function deleteQuotaChanges(db: Db, tenantId: TenantId): Promise<void> {
  await db.deleteFrom('tenant_quotas').where('tenant_id', '=', tenantId).execute();
}

/** Counts a build towards the tenant's quota of builds an hour. */
export async function insertBuildStart(db: Db, tenantId: TenantId, startedAt: Date): Promise<void> {
  await db.insertInto('tenant_build_starts').values({ tenant_id: tenantId, started_at: startedAt }).execute();
}

/** Forgets the tenant's starts before `until`. @returns how many are left */
export async function deleteOldBuildStarts(db: Db, tenantId: TenantId, until: Date): Promise<number> {
  await db.deleteFrom('tenant_build_starts').where('tenant_id', '=', tenantId).where('started_at', '<=', until).execute();
  return countBuildStartsSince(db, tenantId, until);
}

/** Builds that the tenant has started after `since`. */
export async function countBuildStartsSince(db: Db, tenantId: TenantId, since: Date): Promise<number> {
  const { count } = await db
    .selectFrom('tenant_build_starts')
    .select((start) => start.fn.countAll<number>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('started_at', '>', since)
    .executeTakeFirstOrThrow();
  return Number(count);
}
