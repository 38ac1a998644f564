import type { Db } from '#shared/database/db.ts';
import type { AppId, TenantId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';
import type { AddonBinding } from '#shared/platform/workloads.ts';

/**
 * What an app's add-ons give it, for the rooms that know nothing of add-ons: releases runs them, builds builds with them.
 * core/addons implements it.
 */
export interface Bindings {
  /** Of the add-ons whose address is known. Secret. */
  readBindings(db: Db, tenantId: TenantId, appId: AppId): Promise<readonly AddonBinding[]>;
  /** The variables that belong to the app's add-ons, whether or not their address is known. */
  listBoundVariables(db: Db, appId: AppId): Promise<readonly { addonType: AddonType; name: string }[]>;
}
