import { type JSONColumnType, type Selectable, sql } from 'kysely';
import type { ReleaseKind, ReleaseStatus } from '#shared/core/releases/releases.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import { type AppId, type BuildId, isUuid, type ObjectId, type ReleaseId, type RepositoryId, type UserId } from '#shared/ids.ts';
import type { BootSettings } from '#shared/platform/workloads.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    releases: {
      id: ReleaseId;
      app_id: AppId;
      version: number;
      status: ReleaseStatus;
      kind: ReleaseKind;
      commit: string | null;
      image_url: string;
      processes: JSONColumnType<Record<string, string>>;
      release_command: string | null;
      /** Sealed JSON of the variables at the time: a rollback restores them too. */
      config: string;
      /** How its instances start, as the app had set it at the time. */
      boot: JSONColumnType<BootSettings>;
      build_id: BuildId | null;
      description: string;
      created_by: UserId;
      created_at: CreatedAt;
      /** When its image was given up for deletion; null while the image is kept. */
      image_collected_at: Date | null;
    };
    /** How many releases an app ever had: versions are given by counting up under this row's lock. */
    release_counters: { app_id: AppId; last_version: number };
  }
}

/** A release as it is stored. */
export type ReleaseRow = Selectable<Tables['releases']>;

/** With the email of who created it, where that is known, the app's current release, and what the commit says. */
export type ListedRelease = ReleaseRow & {
  author_email: string | null;
  current_release_id: ReleaseId | null;
  commit_title: string | null;
  commit_author: string | null;
};

/** A `pending` one. */
export async function insertRelease(trx: Db, release: Omit<ReleaseRow, 'status' | 'image_collected_at'>): Promise<void> {
  const processes = JSON.stringify(release.processes);
  const boot = JSON.stringify(release.boot);
  await trx
    .insertInto('releases')
    .values({ ...release, processes, boot, status: 'pending', image_collected_at: null })
    .execute();
}

/** Written when its deploy ends. */
export async function setReleaseStatus(trx: Db, releaseId: ReleaseId, status: ReleaseStatus): Promise<void> {
  await trx.updateTable('releases').set({ status }).where('id', '=', releaseId).execute();
}

/** Undefined for an unknown id. */
export async function readReleaseById(db: Db, releaseId: ReleaseId): Promise<ReleaseRow | undefined> {
  return db.selectFrom('releases').selectAll().where('id', '=', releaseId).executeTakeFirst();
}

/** The newest releases of an app with their sealed variables, newest first. */
export async function listNewestReleases(
  db: Db,
  appId: AppId,
  count: number,
): Promise<Pick<ReleaseRow, 'app_id' | 'version' | 'config'>[]> {
  const select = db.selectFrom('releases').select(['app_id', 'version', 'config']).where('app_id', '=', appId);
  return select.orderBy('version', 'desc').limit(count).execute();
}

/** A release of this app by id, `7` or `v7`. */
export async function findRelease(db: Db, appId: AppId, release: string): Promise<ReleaseRow | undefined> {
  const select = db.selectFrom('releases').selectAll().where('app_id', '=', appId);
  if (isUuid(release)) return select.where('id', '=', release as ReleaseId).executeTakeFirst();
  const version = /^v?(\d{1,9})$/.exec(release)?.[1];
  return version === undefined ? undefined : select.where('version', '=', Number(version)).executeTakeFirst();
}

/** What the next change of config or add-ons is based on, with the refs that still move when that is live. */
export type BaseRelease = ReleaseRow & { ref_changes: readonly RefMove[] | null };

/**
 * The newest release that is live or on its way there. One that was superseded or failed has never shown that it starts: it is
 * the base only where there is no other, as the change may be what it lacks.
 */
export async function readBaseRelease(db: Db, appId: AppId): Promise<BaseRelease | undefined> {
  const row = await db
    .selectFrom('releases')
    .innerJoin('deploys', 'deploys.release_id', 'releases.id')
    .selectAll('releases')
    .select(['deploys.ref_changes', 'deploys.status as deploy_status'])
    .where('releases.app_id', '=', appId)
    .orderBy(sql`deploys.status in ('pending', 'rolling', 'live')`, 'desc')
    .orderBy('releases.version', 'desc')
    .limit(1)
    .executeTakeFirst();
  if (row === undefined) return undefined;
  const { deploy_status, ...base } = row;
  return deploy_status === 'live' ? { ...base, ref_changes: null } : base;
}

/** Which images of an app are kept. */
export interface KeptImagesQuery {
  appId: AppId;
  /** Of so many newest releases that did not fail. */
  releases: number;
  /** And of these, whatever became of them. */
  versions: readonly number[];
}

/** Images of the newest releases, of the current one, and of those whose deploy is not over. */
export async function listKeptImages(db: Db, { appId, releases, versions }: KeptImagesQuery): Promise<string[]> {
  const newest = db
    .selectFrom('releases')
    .select('id')
    .where('app_id', '=', appId)
    .where('status', '!=', 'failed')
    .orderBy('version', 'desc')
    .limit(releases);
  const rows = await db
    .selectFrom('releases')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .innerJoin('deploys', 'deploys.release_id', 'releases.id')
    .select('releases.image_url')
    .distinct()
    .where('releases.app_id', '=', appId)
    .where((row) =>
      row.or([
        row('releases.id', 'in', newest),
        row('releases.id', '=', row.ref('apps.current_release_id')),
        row('deploys.status', 'in', ['pending', 'rolling']),
        ...(versions.length === 0 ? [] : [row('releases.version', 'in', versions)]),
      ]),
    )
    .execute();
  return rows.map(({ image_url }) => image_url);
}

/** Records that the images of all releases of an app but these are given up. */
export async function markCollectedImages(trx: Db, appId: AppId, kept: readonly string[], now: Date): Promise<void> {
  await trx
    .updateTable('releases')
    .set({ image_collected_at: now })
    .where('app_id', '=', appId)
    .where('image_collected_at', 'is', null)
    .where('image_url', 'not in', kept)
    .execute();
}

/** Apps with more releases that have their image than this. */
export async function listAppIdsWithOldImages(db: Db, releases: number): Promise<AppId[]> {
  const rows = await db
    .selectFrom('releases')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .select('releases.app_id')
    .where('apps.deleted_at', 'is', null)
    .where('releases.image_collected_at', 'is', null)
    .groupBy('releases.app_id')
    .having((row) => row.fn.countAll(), '>', releases)
    .execute();
  return rows.map(({ app_id }) => app_id);
}

/** Commits of all releases of a repository's apps. */
export async function listReleasedCommits(db: Db, repositoryId: RepositoryId): Promise<ObjectId[]> {
  const rows = await db
    .selectFrom('releases')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .select('releases.commit')
    .distinct()
    .where('apps.repository_id', '=', repositoryId)
    .where('releases.commit', 'is not', null)
    .execute();
  return rows.map(({ commit }) => commit as ObjectId);
}

/** 1 for an app's first release, then without gaps; no number is given twice. */
export async function nextReleaseVersion(trx: Db, appId: AppId): Promise<number> {
  const row = await trx
    .insertInto('release_counters')
    .values({ app_id: appId, last_version: 1 })
    .onConflict((conflict) =>
      conflict.column('app_id').doUpdateSet({ last_version: sql<number>`release_counters.last_version + 1` }),
    )
    .returning('last_version')
    .executeTakeFirstOrThrow();
  return row.last_version;
}

/** Which releases, and which page of them. */
export interface ReleaseListQuery extends KeysetPage {
  appId: AppId;
  /** This release only. */
  releaseId?: ReleaseId;
}

/** Newest first. */
export async function listReleases(db: Db, { appId, before, limit, releaseId }: ReleaseListQuery): Promise<ListedRelease[]> {
  let select = db
    .selectFrom('releases')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .leftJoin('memberships', (join) =>
      join.onRef('memberships.user_id', '=', 'releases.created_by').onRef('memberships.tenant_id', '=', 'apps.tenant_id'),
    )
    .leftJoin('commit_titles', (join) =>
      join.onRef('commit_titles.repository_id', '=', 'apps.repository_id').onRef('commit_titles.commit', '=', 'releases.commit'),
    )
    .selectAll('releases')
    .select(['memberships.email as author_email', 'apps.current_release_id'])
    .select(['commit_titles.title as commit_title', 'commit_titles.author as commit_author'])
    .where('releases.app_id', '=', appId)
    .where(keysetBefore(before, 'releases'));
  if (releaseId !== undefined) select = select.where('releases.id', '=', releaseId);
  return select.orderBy('releases.created_at', 'desc').orderBy('releases.id', 'desc').limit(limit).execute();
}
