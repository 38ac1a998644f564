import { requireQuota } from '#shared/core/accounts/quotas.ts';
import { lockTenant } from '#shared/core/accounts/tenants-store.ts';
import { measureAddons } from '#shared/core/addons/addon-quota.ts';
import { type AppRow, countApps } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { requireInstances } from '#shared/core/releases/instance-quota.ts';
import { countInstances } from '#shared/core/releases/instances-store.ts';
import type { Db } from '#shared/database/db.ts';

/**
 * Restores an app: what it had counts again.
 * @param restore marks the app and its previews
 * @throws AppError `forbidden` when the tenant would have more than it may
 */
export async function restoreWithinQuotas<Result>(
  context: Pick<Context, 'settings'>,
  trx: Db,
  { tenant_id: tenantId }: Pick<AppRow, 'tenant_id'>,
  restore: () => Promise<Result>,
): Promise<Result> {
  const measure = async () => ({
    ...(await measureAddons(trx, tenantId)),
    apps: await countApps(trx, tenantId),
    instances: await countInstances(trx, tenantId),
  });
  await lockTenant(trx, tenantId);
  const before = await measure();
  const result = await restore();
  const after = await measure();
  for (const name of ['apps', 'kvstores', 'kvstore_memory_mib', 'databases'] as const)
    await requireQuota(context, trx, tenantId, name, async () => ({ used: before[name], wanted: after[name] }));
  await requireInstances(context, trx, tenantId, async () => ({ used: before.instances, wanted: after.instances }));
  return result;
}
