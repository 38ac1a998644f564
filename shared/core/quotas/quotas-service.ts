import { resolveCaller } from '#shared/core/accounts/callers.ts';
import { readQuotas } from '#shared/core/accounts/quotas.ts';
import { countBuildStartsSince } from '#shared/core/accounts/quotas-store.ts';
import { measureAddons } from '#shared/core/addons/addon-quota.ts';
import { countApps } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { TenantQuotas } from '#shared/core/quotas/quotas.ts';
import { memoryOf } from '#shared/core/releases/instance-quota.ts';
import { countInstances } from '#shared/core/releases/instances-store.ts';
import { addSeconds, secondsPerHour } from '#shared/durations.ts';
import { type Quotas, quotaNames } from '#shared/settings/quotas.ts';

/** The quotas of a tenant and what is used of them. */
export function createTenantQuotas(context: Context): TenantQuotas {
  const { db, clock } = context;
  return {
    async listQuotas(caller) {
      const { tenantId } = await resolveCaller(context, caller);
      const quotas = await readQuotas(context, db, tenantId);
      const instances = await countInstances(db, tenantId);
      const used: Quotas = {
        apps: await countApps(db, tenantId),
        instances,
        memory_mib: memoryOf(instances),
        builds_per_hour: await countBuildStartsSince(db, tenantId, addSeconds(clock.now(), -secondsPerHour)),
        ...(await measureAddons(db, tenantId)),
      };
      return quotaNames.map((name) => ({ name, limit: quotas[name], used: used[name] }));
    },
  };
}
