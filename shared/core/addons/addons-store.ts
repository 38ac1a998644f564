import type { Generated, Selectable } from 'kysely';
import type { AddonPlan, AddonStatus } from '#shared/core/addons/addons.ts';
import type { CreatedAt, Db, Tables, UpdatedAt } from '#shared/database/db.ts';
import type { AppId, TenantId, UserId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** SPEC.md §2. `password` is what the servers shall accept, `credentials` JSON with the address that they have; both are sealed. */
    app_addons: {
      app_id: AppId;
      addon_type: AddonType;
      plan: AddonPlan;
      /** 'creating' until the servers have been brought to the row; then what was seen last. */
      status: Exclude<AddonStatus, 'deleting'>;
      password: string;
      /** Null until the servers have been brought to the row for the first time. */
      credentials: string | null;
      /** Counted up by each requested change: the results of jobs for an older generation are not written. */
      generation: Generated<number>;
      changed_by: UserId;
      created_at: CreatedAt;
      updated_at: UpdatedAt;
      /** Set while it is being removed; then the row is deleted. */
      removed_at: Date | null;
    };
  }
}

/** An add-on as it is stored. */
export type AddonRow = Selectable<Tables['app_addons']>;
type AddonKey = Pick<AddonRow, 'app_id' | 'addon_type'>;

/** Also one that is being removed. */
export async function readAddonRow(db: Db, appId: AppId, type: AddonType): Promise<AddonRow | undefined> {
  return db.selectFrom('app_addons').selectAll().where('app_id', '=', appId).where('addon_type', '=', type).executeTakeFirst();
}

/** The app's add-ons by type, without those that are being removed. */
export async function listAddonRows(db: Db, appId: AppId): Promise<AddonRow[]> {
  return db
    .selectFrom('app_addons')
    .selectAll()
    .where('app_id', '=', appId)
    .where('removed_at', 'is', null)
    .orderBy('addon_type')
    .execute();
}

/** Add-ons of a tenant's active apps, also those that are being removed. */
export async function listAddonsOfTenant(
  db: Db,
  tenantId: TenantId,
): Promise<Pick<AddonRow, 'app_id' | 'addon_type' | 'plan'>[]> {
  return db
    .selectFrom('app_addons')
    .innerJoin('apps', 'apps.id', 'app_addons.app_id')
    .select(['app_addons.app_id', 'app_addons.addon_type', 'app_addons.plan'])
    .where('apps.tenant_id', '=', tenantId)
    .where('apps.deleted_at', 'is', null)
    .execute();
}

/** Of the app's add-ons in any state. */
export async function listAddonTypes(db: Db, appId: AppId): Promise<AddonType[]> {
  const rows = await db.selectFrom('app_addons').select('addon_type').where('app_id', '=', appId).execute();
  return rows.map((row) => row.addon_type);
}

/** Active apps that have add-ons. */
export async function listAppIdsWithAddons(db: Db): Promise<AppId[]> {
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('deleted_at', 'is', null)
    .where('id', 'in', db.selectFrom('app_addons').select('app_id'))
    .execute();
  return rows.map(({ id }) => id);
}

/** What a new add-on is stored with. */
export type NewAddon = AddonKey & Pick<AddonRow, 'plan' | 'password' | 'changed_by' | 'created_at'>;

/** A `creating` one. */
export async function insertAddon(trx: Db, addon: NewAddon): Promise<void> {
  await trx
    .insertInto('app_addons')
    .values({ ...addon, status: 'creating', credentials: null, updated_at: addon.created_at, removed_at: null })
    .execute();
}

/** A change that somebody has requested, and who. */
export interface AddonChange extends Partial<Pick<AddonRow, 'plan' | 'password' | 'removed_at'>> {
  changed_by: UserId;
  updated_at: Date;
}

/** Writes a requested change. The add-on is `creating` again, in the next generation. */
export async function changeAddonRow(trx: Db, addon: AddonKey, change: AddonChange): Promise<void> {
  await trx
    .updateTable('app_addons')
    .set((row) => ({ ...change, status: 'creating', generation: row('generation', '+', 1) }))
    .where('app_id', '=', addon.app_id)
    .where('addon_type', '=', addon.addon_type)
    .execute();
}

/** Writes what was found out about its servers. */
export async function recordAddonState(trx: Db, addon: AddonKey, state: Pick<AddonRow, 'status' | 'credentials'>): Promise<void> {
  await trx
    .updateTable('app_addons')
    .set(state)
    .where('app_id', '=', addon.app_id)
    .where('addon_type', '=', addon.addon_type)
    .execute();
}

/** Deletes the record, once its servers are deleted. */
export async function deleteAddonRow(db: Db, { app_id, addon_type }: AddonKey): Promise<void> {
  await db.deleteFrom('app_addons').where('app_id', '=', app_id).where('addon_type', '=', addon_type).execute();
}
