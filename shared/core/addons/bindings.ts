import { addonVariable, clientVariables } from '#shared/core/addons/addon-plans.ts';
import { openAddonCredentials } from '#shared/core/addons/addon-secrets.ts';
import { listAddonRows } from '#shared/core/addons/addons-store.ts';
import { readAppById } from '#shared/core/apps/apps-store.ts';
import type { Bindings } from '#shared/core/bindings.ts';
import type { Context } from '#shared/core/context.ts';
import { readSettings } from '#shared/core/releases/settings-store.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonBinding } from '#shared/platform/workloads.ts';

/** The bindings that the add-ons' stored credentials make. */
export function createBindings(context: Pick<Context, 'secrets'>): Bindings {
  return {
    async readBindings(db, tenantId, appId) {
      const rows = await listAddonRows(db, appId);
      const wantsClientVariables = rows.length > 0 && (await readClientVariables(db, appId));
      const bindings = rows.map(async (row): Promise<AddonBinding[]> => {
        const credentials = await openAddonCredentials(context, tenantId, row);
        if (credentials === undefined) return [];
        const { addon_type: addonType } = row;
        const variables = { [addonVariable(addonType)]: credentials.uri };
        return wantsClientVariables
          ? [{ addonType, variables, clientVariables: clientVariables(addonType, credentials) }]
          : [{ addonType, variables }];
      });
      return (await Promise.all(bindings)).flat();
    },
    async listBoundVariables(db, appId) {
      const rows = await listAddonRows(db, appId);
      return rows.map(({ addon_type: addonType }) => ({ addonType, name: addonVariable(addonType) }));
    },
  };
}

async function readClientVariables(db: Db, appId: AppId): Promise<boolean> {
  const app = await readAppById(db, appId);
  return app !== undefined && (await readSettings(db, app)).clientVariables === true;
}
