import { requireQuota } from '#shared/core/accounts/quotas.ts';
import { countApps } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { TenantId } from '#shared/ids.ts';

/** Before another app of the tenant is created or restored in the transaction. @throws AppError `forbidden` */
export async function requireAppQuota(context: Pick<Context, 'settings'>, trx: Db, tenantId: TenantId): Promise<void> {
  await requireQuota(context, trx, tenantId, 'apps', async () => {
    const used = await countApps(trx, tenantId);
    return { used, wanted: used + 1 };
  });
}
