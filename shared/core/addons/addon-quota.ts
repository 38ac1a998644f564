import { requireQuota } from '#shared/core/accounts/quotas.ts';
import { planSize } from '#shared/core/addons/addon-plans.ts';
import type { AddonPlan } from '#shared/core/addons/addons.ts';
import { listAddonsOfTenant } from '#shared/core/addons/addons-store.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { TenantId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

const quotaOfType = { kvstore: 'kvstores', database: 'databases' } as const;

/** What a tenant's add-ons take of its quotas. */
export interface AddonUse {
  kvstores: number;
  kvstore_memory_mib: number;
  databases: number;
}

/** Of active apps; those that are being removed too, until their servers are gone. */
export async function measureAddons(db: Db, tenantId: TenantId, except?: { app_id: string; type: AddonType }): Promise<AddonUse> {
  const addons = (await listAddonsOfTenant(db, tenantId)).filter(
    ({ app_id, addon_type }) => app_id !== except?.app_id || addon_type !== except.type,
  );
  const kvstores = addons.filter(({ addon_type }) => addon_type === 'kvstore');
  return {
    kvstores: kvstores.length,
    kvstore_memory_mib: kvstores.reduce((sum, { plan }) => sum + memoryOf('kvstore', plan), 0),
    databases: addons.length - kvstores.length,
  };
}

/** Of all servers of a plan, in MiB. */
function memoryOf(type: AddonType, plan: AddonPlan): number {
  const { replicas, memoryBytes } = planSize(type, plan);
  return (replicas * memoryBytes) / 1024 / 1024;
}

/** Before an add-on of the app is created, or gets the plan. @throws AppError `forbidden` */
export async function requireAddonQuota(
  context: Pick<Context, 'settings'>,
  trx: Db,
  { id, tenant_id: tenantId }: Pick<AppRow, 'id' | 'tenant_id'>,
  { type, plan }: { type: AddonType; plan: AddonPlan },
): Promise<void> {
  const measure = async () => ({
    before: await measureAddons(trx, tenantId),
    others: await measureAddons(trx, tenantId, { app_id: id, type }),
  });
  const name = quotaOfType[type];
  await requireQuota(context, trx, tenantId, name, async () => {
    const { before, others } = await measure();
    return { used: before[name], wanted: others[name] + 1 };
  });
  if (type !== 'kvstore') return;
  await requireQuota(context, trx, tenantId, 'kvstore_memory_mib', async () => {
    const { before, others } = await measure();
    return { used: before.kvstore_memory_mib, wanted: others.kvstore_memory_mib + memoryOf(type, plan) };
  });
}
