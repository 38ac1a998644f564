import type { Selectable } from 'kysely';
import type { Database, Db } from '#shared/database/schema.ts';
import type { AppId } from '#shared/ids.ts';
import type { AddonType } from '#shared/platform/addons.ts';

export type AddonRow = Selectable<Database['app_addons']>;

/** Also one that is being removed. */
export async function readAddonRow(db: Db, appId: AppId, type: AddonType): Promise<AddonRow | undefined> {
  return db.selectFrom('app_addons').selectAll().where('app_id', '=', appId).where('addon_type', '=', type).executeTakeFirst();
}

/** Those the app has, by type; not those that are being removed. */
export async function listAddonRows(db: Db, appId: AppId): Promise<AddonRow[]> {
  return db
    .selectFrom('app_addons')
    .selectAll()
    .where('app_id', '=', appId)
    .where('removed_at', 'is', null)
    .orderBy('addon_type')
    .execute();
}
