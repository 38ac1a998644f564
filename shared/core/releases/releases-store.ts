import { type Selectable, sql } from 'kysely';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { Database, Db, DeployStep } from '#shared/database/schema.ts';
import type { AppId, DeployId, ObjectId, ReleaseId, RepositoryId } from '#shared/ids.ts';
import { isUuid } from '#shared/ids.ts';

export type ReleaseRow = Selectable<Database['releases']>;
export type DeployRow = Selectable<Database['deploys']>;

export async function readReleaseById(db: Db, releaseId: ReleaseId): Promise<ReleaseRow | undefined> {
  return db.selectFrom('releases').selectAll().where('id', '=', releaseId).executeTakeFirst();
}

/** A release of this app by id, `7` or `v7`. */
export async function findRelease(db: Db, appId: AppId, release: string): Promise<ReleaseRow | undefined> {
  const select = db.selectFrom('releases').selectAll().where('app_id', '=', appId);
  if (isUuid(release)) return select.where('id', '=', release as ReleaseId).executeTakeFirst();
  const version = /^v?(\d{1,9})$/.exec(release)?.[1];
  return version === undefined ? undefined : select.where('version', '=', Number(version)).executeTakeFirst();
}

/**
 * The newest release that is live or on its way there: what the next change of config builds upon. One that was left to
 * a newer release never showed that it comes up.
 */
export async function readLatestGoodRelease(db: Db, appId: AppId): Promise<ReleaseRow | undefined> {
  return db
    .selectFrom('releases')
    .innerJoin('deploys', 'deploys.release_id', 'releases.id')
    .selectAll('releases')
    .where('releases.app_id', '=', appId)
    .where('deploys.status', 'in', ['pending', 'rolling', 'live'])
    .orderBy('releases.version', 'desc')
    .limit(1)
    .executeTakeFirst();
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

/** 1 for an app's first release; gaps never, numbers never given twice. */
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

interface ListQuery extends KeysetPage {
  appId: AppId;
  /** Of this release only. */
  releaseId?: ReleaseId;
}

/** Newest first, with the email of who made it where it is known. */
export async function listReleases(db: Db, { appId, before, limit, releaseId }: ListQuery) {
  let select = db
    .selectFrom('releases')
    .innerJoin('apps', 'apps.id', 'releases.app_id')
    .leftJoin('memberships', (join) =>
      join.onRef('memberships.user_id', '=', 'releases.created_by').onRef('memberships.tenant_id', '=', 'apps.tenant_id'),
    )
    .selectAll('releases')
    .select(['memberships.email as author_email', 'apps.current_release_id'])
    .where('releases.app_id', '=', appId)
    .where(keysetBefore(before, 'releases'));
  if (releaseId !== undefined) select = select.where('releases.id', '=', releaseId);
  return select.orderBy('releases.created_at', 'desc').orderBy('releases.id', 'desc').limit(limit).execute();
}

/** Newest first, with the version of the release. */
export async function listDeploys(db: Db, { appId, before, limit, releaseId }: ListQuery) {
  let select = db
    .selectFrom('deploys')
    .innerJoin('releases', 'releases.id', 'deploys.release_id')
    .selectAll('deploys')
    .select('releases.version')
    .where('deploys.app_id', '=', appId)
    .where(keysetBefore(before, 'deploys'));
  if (releaseId !== undefined) select = select.where('deploys.release_id', '=', releaseId);
  return select.orderBy('deploys.created_at', 'desc').orderBy('deploys.id', 'desc').limit(limit).execute();
}

/** The deploy of a release; a release has one. */
export async function readDeployOfRelease(db: Db, releaseId: ReleaseId): Promise<DeployRow | undefined> {
  return db.selectFrom('deploys').selectAll().where('release_id', '=', releaseId).limit(1).executeTakeFirst();
}

/** See `claimBuild`. Undefined when it is over already. */
export async function claimDeploy(db: Db, deployId: DeployId): Promise<DeployRow | undefined> {
  return db
    .updateTable('deploys')
    .set((deploy) => ({ status: 'rolling', attempt: deploy('attempt', '+', 1) }))
    .where('id', '=', deployId)
    .where('status', 'in', ['pending', 'rolling'])
    .returningAll()
    .executeTakeFirst();
}

/** Records the steps of a rollout so far. Writes nothing and gives false when another attempt has claimed the deploy since. */
export async function writeDeploySteps(db: Db, deploy: DeployRow, steps: readonly DeployStep[]): Promise<boolean> {
  const written = await db
    .updateTable('deploys')
    .set({ weight: steps.at(-1)?.weight ?? 0, steps: JSON.stringify(steps) })
    .where('id', '=', deploy.id)
    .where('attempt', '=', deploy.attempt)
    .executeTakeFirst();
  return written.numUpdatedRows > 0n;
}
