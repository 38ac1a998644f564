import type { Generated, JSONColumnType, Selectable } from 'kysely';
import type { DeployFailure, DeployStatus, DeployStep, ReleaseKind } from '#shared/core/releases/releases.ts';
import type { ReleaseRow } from '#shared/core/releases/releases-store.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { AppId, DeployId, ObjectId, ReleaseId, RepositoryId } from '#shared/ids.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    /** How a release was brought live, or why it was not. Each release has one deploy. */
    deploys: {
      id: DeployId;
      app_id: AppId;
      release_id: ReleaseId;
      status: DeployStatus;
      weight: Generated<number>;
      steps: JSONColumnType<DeployStep[]>;
      error: string | null;
      /** What `error` is about. Null where there is none, and for deploys that were superseded. */
      failure: DeployFailure | null;
      /** The refs of a push that move when the release is live, all or none; null when nothing moves. */
      ref_changes: JSONColumnType<RefMove[]> | null;
      /** Counted up by each attempt: writes that name an older one match no row. */
      attempt: Generated<number>;
      created_at: CreatedAt;
      finished_at: Date | null;
    };
  }
}

/** A deploy as it is stored. */
export type DeployRow = Selectable<Tables['deploys']>;

/** With the version of its release, and the app's current release. */
export type ListedDeploy = DeployRow & Pick<ReleaseRow, 'version'> & { current_release_id: ReleaseId | null };

/** A `pending` one. */
export async function insertDeploy(
  trx: Db,
  deploy: Pick<DeployRow, 'id' | 'app_id' | 'release_id' | 'created_at'> & { ref_changes: readonly RefMove[] | null },
): Promise<void> {
  const pending = { status: 'pending', steps: '[]', error: null, failure: null, finished_at: null } as const;
  await trx
    .insertInto('deploys')
    .values({ ...deploy, ...pending, ref_changes: deploy.ref_changes === null ? null : JSON.stringify(deploy.ref_changes) })
    .execute();
}

/** Which deploys, and which page of them. */
export interface DeployListQuery extends KeysetPage {
  appId: AppId;
  /** Of this release only. */
  releaseId?: ReleaseId;
}

/** Newest first. */
export async function listDeploys(db: Db, { appId, before, limit, releaseId }: DeployListQuery): Promise<ListedDeploy[]> {
  let select = db
    .selectFrom('deploys')
    .innerJoin('releases', 'releases.id', 'deploys.release_id')
    .innerJoin('apps', 'apps.id', 'deploys.app_id')
    .selectAll('deploys')
    .select(['releases.version', 'apps.current_release_id'])
    .where('deploys.app_id', '=', appId)
    .where(keysetBefore(before, 'deploys'));
  if (releaseId !== undefined) select = select.where('deploys.release_id', '=', releaseId);
  return select.orderBy('deploys.created_at', 'desc').orderBy('deploys.id', 'desc').limit(limit).execute();
}

/** Undefined for an unknown release. */
export async function readDeployOfRelease(db: Db, releaseId: ReleaseId): Promise<DeployRow | undefined> {
  return db.selectFrom('deploys').selectAll().where('release_id', '=', releaseId).limit(1).executeTakeFirst();
}

/**
 * Whether a deploy with one of these statuses has a newer release than this one, of one of these kinds. Deploys with and without a
 * release command take different slots, and one that was interrupted is taken up again later: so a newer one may come first.
 */
export async function hasNewerDeploy(
  db: Db,
  { app_id, version }: Pick<ReleaseRow, 'app_id' | 'version'>,
  { kinds, statuses }: { kinds: readonly ReleaseKind[]; statuses: readonly DeployStatus[] },
): Promise<boolean> {
  const newer = await db
    .selectFrom('deploys')
    .innerJoin('releases', 'releases.id', 'deploys.release_id')
    .select('deploys.id')
    .where('deploys.app_id', '=', app_id)
    .where('deploys.status', 'in', statuses)
    .where('releases.version', '>', version)
    .where('releases.kind', 'in', kinds)
    .limit(1)
    .executeTakeFirst();
  return newer !== undefined;
}

/** Whether a release of the app is waiting for its deploy, or is being brought live. */
export async function hasOpenDeploy(db: Db, appId: AppId): Promise<boolean> {
  const open = await db
    .selectFrom('deploys')
    .select('id')
    .where('app_id', '=', appId)
    .where('status', 'in', ['pending', 'rolling'])
    .limit(1)
    .executeTakeFirst();
  return open !== undefined;
}

/** Begins another attempt, which fences off those before. Undefined when the deploy is over already. */
export async function claimDeploy(db: Db, deployId: DeployId): Promise<DeployRow | undefined> {
  return db
    .updateTable('deploys')
    .set((deploy) => ({ status: 'rolling', attempt: deploy('attempt', '+', 1) }))
    .where('id', '=', deployId)
    .where('status', 'in', ['pending', 'rolling'])
    .returningAll()
    .executeTakeFirst();
}

type DeployAttempt = Pick<DeployRow, 'id' | 'attempt'>;

/** Records the steps of a rollout so far. False when another attempt has claimed the deploy since: nothing is written then. */
export async function writeDeploySteps(db: Db, deploy: DeployAttempt, steps: readonly DeployStep[]): Promise<boolean> {
  const written = await db
    .updateTable('deploys')
    .set({ weight: steps.at(-1)?.weight ?? 0, steps: JSON.stringify(steps) })
    .where('id', '=', deploy.id)
    .where('attempt', '=', deploy.attempt)
    .executeTakeFirst();
  return written.numUpdatedRows > 0n;
}

/** What is written when a deploy ends. */
export type DeployEnd = Pick<DeployRow, 'status' | 'error' | 'failure' | 'weight' | 'finished_at'>;

/** False when another attempt has claimed the deploy since, or it is over: nothing is written then. */
export async function endDeploy(trx: Db, deploy: DeployAttempt, end: DeployEnd): Promise<boolean> {
  const written = await trx
    .updateTable('deploys')
    .set(end)
    .where('id', '=', deploy.id)
    .where('attempt', '=', deploy.attempt)
    .where('status', '=', 'rolling')
    .executeTakeFirst();
  return written.numUpdatedRows > 0n;
}

/** Records that a live release's refs could not move. */
export async function setDeployFailure(trx: Db, deployId: DeployId, failure: DeployFailure, error: string): Promise<void> {
  await trx.updateTable('deploys').set({ failure, error }).where('id', '=', deployId).execute();
}

/** Objects that refs are to move to once deploys of a repository's apps are live that are not over. */
export async function listOpenDeployTargets(db: Db, repositoryId: RepositoryId): Promise<ObjectId[]> {
  const rows = await db
    .selectFrom('deploys')
    .innerJoin('apps', 'apps.id', 'deploys.app_id')
    .select('deploys.ref_changes')
    .where('apps.repository_id', '=', repositoryId)
    .where('deploys.status', 'in', ['pending', 'rolling'])
    .where('deploys.ref_changes', 'is not', null)
    .execute();
  return rows.flatMap(({ ref_changes }) => (ref_changes ?? []).flatMap(({ to }) => to ?? []));
}
