import { addonVariable } from '#shared/core/addons/addon-plans.ts';
import { openAddonCredentials } from '#shared/core/addons/addon-secrets.ts';
import { listAddonRows } from '#shared/core/addons/addons-store.ts';
import type { Bindings } from '#shared/core/bindings.ts';
import type { Context } from '#shared/core/context.ts';
import type { AddonBinding } from '#shared/platform/workloads.ts';

/** The bindings that the add-ons' stored credentials make. */
export function createBindings(context: Pick<Context, 'secrets'>): Bindings {
  return {
    async readBindings(db, tenantId, appId) {
      const rows = await listAddonRows(db, appId);
      const bindings = rows.map(async (row): Promise<AddonBinding[]> => {
        const credentials = await openAddonCredentials(context, tenantId, row);
        if (credentials === undefined) return [];
        return [{ addonType: row.addon_type, variables: { [addonVariable(row.addon_type)]: credentials.uri } }];
      });
      return (await Promise.all(bindings)).flat();
    },
    async listBoundVariables(db, appId) {
      const rows = await listAddonRows(db, appId);
      return rows.map(({ addon_type: addonType }) => ({ addonType, name: addonVariable(addonType) }));
    },
  };
}
