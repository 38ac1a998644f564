import type { Selectable } from 'kysely';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import { prepare } from '#shared/database/prepared.ts';
import type { Database, Db } from '#shared/database/schema.ts';
import type { AppId, ReleaseId, TenantId } from '#shared/ids.ts';
import { isUuid } from '#shared/ids.ts';

/** An app with the version of the release that is current; `cache_begun` is for who starts a build alone. */
export type AppRow = Omit<Selectable<Database['apps']>, 'cache_begun'> & { current_version: number | null };

/** All of these, by name: see `prepare`. */
export const appColumns = [
  'apps.id',
  'apps.tenant_id',
  'apps.name',
  'apps.git_url',
  'apps.branch',
  'apps.repository_id',
  'apps.parent_app_id',
  'apps.preview_branch',
  'apps.current_release_id',
  'apps.created_by',
  'apps.created_at',
  'apps.updated_at',
  'apps.deleted_at',
] as const satisfies readonly `apps.${keyof Database['apps']}`[];

function selectApps(db: Db) {
  return db
    .selectFrom('apps')
    .leftJoin('releases as current', 'current.id', 'apps.current_release_id')
    .select([...appColumns, 'current.version as current_version']);
}

const findById = prepare<{ app: AppId }, AppRow>('find-app-by-id', (db, value) =>
  selectApps(db).where('apps.id', '=', value('app')).compile(),
);
const findByName = prepare<{ app: string }, AppRow>('find-app-by-name', (db, value) =>
  selectApps(db).where('apps.name', '=', value('app')).compile(),
);

/** By id, else by name; deleted ones too. */
export async function findApp(db: Db, idOrName: string): Promise<AppRow | undefined> {
  if (isUuid(idOrName)) return readAppById(db, idOrName as AppId);
  const [row] = await findByName.execute(db, { app: idOrName });
  return row;
}

export async function readAppById(db: Db, appId: AppId): Promise<AppRow | undefined> {
  const [row] = await findById.execute(db, { app: appId });
  return row;
}

export interface AppListQuery extends KeysetPage {
  tenantId: TenantId;
  deletedSince: Date | undefined;
}

const firstPage = prepare<{ tenantId: TenantId; limit: number }, AppRow>('first-page-of-apps', (db, value) =>
  selectApps(db)
    .where('apps.tenant_id', '=', value('tenantId'))
    .where('apps.deleted_at', 'is', null)
    .orderBy('apps.created_at', 'desc')
    .orderBy('apps.id', 'desc')
    .limit(value('limit'))
    .compile(),
);

/** Newest first. With `deletedSince` those deleted after it, else the active ones. */
export async function listApps(db: Db, query: AppListQuery): Promise<AppRow[]> {
  if (query.deletedSince === undefined && query.before === undefined) return firstPage.execute(db, query);
  let select = selectApps(db).where('apps.tenant_id', '=', query.tenantId).where(keysetBefore(query.before, 'apps'));
  select =
    query.deletedSince === undefined
      ? select.where('apps.deleted_at', 'is', null)
      : select.where('apps.deleted_at', '>', query.deletedSince);
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
