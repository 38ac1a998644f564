import { type Selectable, sql } from 'kysely';
import type { Database, Db } from '#shared/database/schema.ts';
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';
import { isUuid } from '#shared/ids.ts';

/** An app with the version of the release that is current. */
export type AppRow = Selectable<Database['apps']> & { current_version: number | null };

function selectApps(db: Db) {
  return db
    .selectFrom('apps')
    .leftJoin('releases as current', 'current.id', 'apps.current_release_id')
    .selectAll('apps')
    .select('current.version as current_version');
}

/** By id, else by name; deleted ones too. */
export async function findApp(db: Db, idOrName: string): Promise<AppRow | undefined> {
  return selectApps(db)
    .where(isUuid(idOrName) ? 'apps.id' : 'apps.name', '=', idOrName as AppId)
    .executeTakeFirst();
}

export async function readAppById(db: Db, appId: AppId): Promise<AppRow | undefined> {
  return selectApps(db).where('apps.id', '=', appId).executeTakeFirst();
}

export interface AppListQuery {
  tenantId: TenantId;
  deletedSince: Date | undefined;
  before: { createdAt: Date; id: string } | undefined;
  limit: number;
}

/** Newest first. With `deletedSince` those deleted after it, else the active ones. */
export async function listApps(db: Db, query: AppListQuery): Promise<AppRow[]> {
  let select = selectApps(db).where('apps.tenant_id', '=', query.tenantId);
  select =
    query.deletedSince === undefined
      ? select.where('apps.deleted_at', 'is', null)
      : select.where('apps.deleted_at', '>', query.deletedSince);
  const { before } = query;
  if (before !== undefined) {
    select = select.where(sql<boolean>`(apps.created_at, apps.id) < (${before.createdAt}, ${before.id}::uuid)`);
  }
  return select.orderBy('apps.created_at', 'desc').orderBy('apps.id', 'desc').limit(query.limit).execute();
}

/** Serialises whatever must not happen twice at once to one app, to the end of the transaction. */
export async function lockApp(trx: Db, appId: AppId): Promise<AppRow | undefined> {
  await trx.selectFrom('apps').select('id').where('id', '=', appId).forUpdate().execute();
  return readAppById(trx, appId);
}

export async function setCurrentRelease(db: Db, appId: AppId, releaseId: ReleaseId): Promise<void> {
  await db.updateTable('apps').set({ current_release_id: releaseId, updated_at: new Date() }).where('id', '=', appId).execute();
}
