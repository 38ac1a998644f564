import type { ColumnType, Generated, Selectable } from 'kysely';
import { type FoundMembership, type MembershipQuery, selectMembership } from '#shared/core/accounts/memberships-store.ts';
import type { CreatedAt, Db, Tables, UpdatedAt } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import { prepare } from '#shared/database/prepared.ts';
import { type AppId, isUuid, type ReleaseId, type RepositoryId, type TenantId, type UserId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    apps: {
      id: AppId;
      tenant_id: TenantId;
      name: string;
      git_url: string | null;
      branch: string;
      /** Its own id, or the parent's for a preview. */
      repository_id: RepositoryId;
      parent_app_id: AppId | null;
      preview_branch: string | null;
      current_release_id: ReleaseId | null;
      /** Whether a build has started on the cache since it was last flushed. */
      cache_begun: Generated<boolean>;
      created_by: UserId;
      created_at: CreatedAt;
      updated_at: UpdatedAt;
      deleted_at: Date | null;
      /** Since when the deleted app is being purged: from then on it cannot be restored. */
      purge_begun_at: ColumnType<Date | null, never, Date>;
    };
  }
}

/** An app with the version of its current release, without what only starting a build and purging need. */
export type AppRow = Omit<Selectable<Tables['apps']>, 'cache_begun' | 'purge_begun_at'> & { current_version: number | null };

/** By name, not `*`: see `prepare`. */
const appColumns = [
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
] as const satisfies readonly `apps.${keyof Tables['apps']}`[];

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

/** By id, else by name; deleted ones and other tenants' too. */
export async function findApp(db: Db, idOrName: string): Promise<AppRow | undefined> {
  if (isUuid(idOrName)) return readAppById(db, idOrName as AppId);
  const [row] = await findByName.execute(db, { app: idOrName });
  return row;
}

/** Deleted apps, too. Undefined without such an app. */
export async function readAppById(db: Db, appId: AppId): Promise<AppRow | undefined> {
  const [row] = await findById.execute(db, { app: appId });
  return row;
}

const findTenantOfApp = prepare<{ app: AppId }, { tenant_id: TenantId }>('find-tenant-of-app', (db, value) =>
  db.selectFrom('apps').select('tenant_id').where('id', '=', value('app')).compile(),
);

/** Deleted apps have one too. Undefined when there is no such app. */
export async function readTenantOfApp(db: Db, appId: AppId): Promise<TenantId | undefined> {
  const [row] = await findTenantOfApp.execute(db, { app: appId });
  return row?.tenant_id;
}

/** The tenant of an app's repository, which its previews share. Undefined when the app is gone. */
export async function readTenantOfRepository(db: Db, repositoryId: RepositoryId): Promise<TenantId | undefined> {
  const row = await db
    .selectFrom('apps')
    .select('tenant_id')
    .where('repository_id', '=', repositoryId)
    .limit(1)
    .executeTakeFirst();
  return row?.tenant_id;
}

/** Without an app all of its columns are null. */
type MembershipAndApp = FoundMembership & (AppRow | { [Column in keyof AppRow]: null });

const findMembershipAndAppById = prepareMembershipAndApp('find-member-and-app-by-id', 'apps.id');
const findMembershipAndAppByName = prepareMembershipAndApp('find-member-and-app-by-name', 'apps.name');

function prepareMembershipAndApp(name: string, key: 'apps.id' | 'apps.name') {
  return prepare<MembershipQuery & { app: string }, MembershipAndApp>(name, (db, value) =>
    selectMembership(db, value)
      .leftJoin('apps', (join) => join.on(key, '=', value('app')))
      .leftJoin('releases as current', 'current.id', 'apps.current_release_id')
      .select([...appColumns, 'current.version as current_version'])
      .$castTo<MembershipAndApp>()
      .compile(),
  );
}

/** `findMembership` and `findApp` in one statement; undefined when the user is no member. */
export async function findMembershipAndApp(
  db: Db,
  query: MembershipQuery & { app: string },
): Promise<{ membership: FoundMembership; app: AppRow | undefined } | undefined> {
  const statement = isUuid(query.app) ? findMembershipAndAppById : findMembershipAndAppByName;
  const [found] = await statement.execute(db, query);
  if (found === undefined) return undefined;
  const { email, member_of, role, session_ended, ...app } = found;
  return { membership: { email, member_of, role, session_ended }, app: app.id === null ? undefined : app };
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
      : select.where('apps.deleted_at', '>', query.deletedSince).where('apps.purge_begun_at', 'is', null);
  return select.orderBy('apps.created_at', 'desc').orderBy('apps.id', 'desc').limit(query.limit).execute();
}

/** Active apps of a tenant, without previews. */
export async function countApps(db: Db, tenantId: TenantId): Promise<number> {
  const { count } = await db
    .selectFrom('apps')
    .select((app) => app.fn.countAll<number>().as('count'))
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .where('parent_app_id', 'is', null)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Until the transaction ends, no other transaction gets this lock. Undefined when there is no such app. */
export async function lockApp(trx: Db, appId: AppId): Promise<AppRow | undefined> {
  await trx.selectFrom('apps').select('id').where('id', '=', appId).forUpdate().execute();
  return readAppById(trx, appId);
}

/** False when the name is taken. A concurrent insert of the same name is waited for. */
export async function insertApp(
  db: Db,
  row: Omit<AppRow, 'current_release_id' | 'current_version' | 'updated_at' | 'deleted_at'>,
): Promise<boolean> {
  const result = await db
    .insertInto('apps')
    .values({ ...row, current_release_id: null, updated_at: row.created_at, deleted_at: null })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .executeTakeFirst();
  return (result.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** The branch that is deployed. */
export async function setBranch(trx: Db, appId: AppId, branch: string, now: Date): Promise<void> {
  await trx.updateTable('apps').set({ branch, updated_at: now }).where('id', '=', appId).execute();
}

/** @param branch left out: it stays as it is */
export async function setGitSource(
  db: Db,
  appId: AppId,
  { url, branch, now }: { url: string | null; branch: string | undefined; now: Date },
): Promise<void> {
  // Kysely leaves out columns whose value is undefined.
  await db.updateTable('apps').set({ git_url: url, branch, updated_at: now }).where('id', '=', appId).execute();
}

/** Makes a release the one that serves. */
export async function setCurrentRelease(db: Db, appId: AppId, releaseId: ReleaseId): Promise<void> {
  await db.updateTable('apps').set({ current_release_id: releaseId, updated_at: new Date() }).where('id', '=', appId).execute();
}

/** Records that a build starts on the app's cache. @returns whether one before has, since the last `resetCache` */
export async function beginCache(trx: Db, appId: AppId): Promise<boolean> {
  const first = await trx
    .updateTable('apps')
    .set({ cache_begun: true })
    .where('id', '=', appId)
    .where('cache_begun', '=', false)
    .executeTakeFirst();
  return first.numUpdatedRows === 0n;
}

/** Records that the app's cache is flushed: the next build is Cold. */
export async function resetCache(db: Db, appId: AppId): Promise<void> {
  await db.updateTable('apps').set({ cache_begun: false }).where('id', '=', appId).execute();
}

/** Ids of the apps, no previews, that are not deleted and follow a repository under one of these addresses; in their order. */
export async function listAppsBySource(db: Db, gitUrls: readonly string[]): Promise<AppId[]> {
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('git_url', 'in', gitUrls)
    .where('parent_app_id', 'is', null)
    .where('deleted_at', 'is', null)
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** Ids of the previews of these branches that are not deleted. */
export async function listPreviewsOf(db: Db, parentId: AppId, branches: readonly string[]): Promise<AppId[]> {
  if (branches.length === 0) return [];
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('parent_app_id', '=', parentId)
    .where('preview_branch', 'in', branches)
    .where('deleted_at', 'is', null)
    .execute();
  return rows.map(({ id }) => id);
}

/** A preview of an app and its branch. */
export interface PreviewRow {
  id: AppId;
  preview_branch: string;
  deleted_at: Date | null;
}

/** Every preview of an app, deleted ones too. */
export async function listPreviews(db: Db, parentId: AppId): Promise<PreviewRow[]> {
  return db
    .selectFrom('apps')
    .select(['id', 'preview_branch', 'deleted_at'])
    .where('parent_app_id', '=', parentId)
    .where('preview_branch', 'is not', null)
    .$narrowType<{ preview_branch: string }>()
    .execute();
}

/** The preview of a branch, also a deleted one. */
export async function findPreviewId(db: Db, parentId: AppId, branch: string): Promise<AppId | undefined> {
  const row = await db
    .selectFrom('apps')
    .select('id')
    .where('parent_app_id', '=', parentId)
    .where('preview_branch', '=', branch)
    .executeTakeFirst();
  return row?.id;
}

/** Active apps that have a release: those that should run. */
export async function listReleasedAppIds(db: Db): Promise<AppId[]> {
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('deleted_at', 'is', null)
    .where('current_release_id', 'is not', null)
    .execute();
  return rows.map(({ id }) => id);
}

/** Any active app of the tenant. */
export async function findAppOfTenant(db: Db, tenantId: TenantId): Promise<AppId | undefined> {
  const row = await db
    .selectFrom('apps')
    .select('id')
    .where('tenant_id', '=', tenantId)
    .where('deleted_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return row?.id;
}

/**
 * The active app that a host leads to.
 * @param query `name`: the app's, for a host that is a subdomain of the platform
 */
export async function findAppOfHost(
  db: Db,
  { host, name }: { host: string; name: string | undefined },
): Promise<AppId | undefined> {
  const row = await db
    .selectFrom('apps')
    .select('id')
    .where('deleted_at', 'is', null)
    .where((app) =>
      app.or([
        ...(name === undefined ? [] : [app('name', '=', name)]),
        app.exists(
          app
            .selectFrom('domains')
            .select('host')
            .whereRef('domains.app_id', '=', 'apps.id')
            .where('host', '=', host)
            .where('status', '=', 'active'),
        ),
      ]),
    )
    .executeTakeFirst();
  return row?.id;
}

/** Those of the ids that are apps, also deleted ones. */
export async function listKnownAppIds(db: Db, ids: readonly AppId[]): Promise<AppId[]> {
  const rows = await db
    .selectFrom('apps')
    .select('id')
    .where('id', '=', (any) => any.fn.any(any.val([...ids])))
    .execute();
  return rows.map(({ id }) => id);
}
