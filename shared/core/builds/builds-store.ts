import { type Generated, type JSONColumnType, type RawBuilder, type Selectable, sql } from 'kysely';
import type { BuildSource, BuildStatus } from '#shared/core/builds/builds.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import type { CreatedAt, Db, Tables } from '#shared/database/db.ts';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { AppId, BuildId, ObjectId, ReleaseId, RepositoryId, UserId } from '#shared/ids.ts';
import type { CacheState } from '#shared/platform/builds.ts';

declare module '#shared/database/db.ts' {
  interface Tables {
    builds: {
      id: BuildId;
      app_id: AppId;
      status: BuildStatus;
      cache_state: CacheState;
      pipeline: string;
      /** Null until it is known, and for an archive. */
      commit: string | null;
      branch: string | null;
      /** The refs that move when the build succeeds, all or none; null when nothing moves. */
      ref_changes: JSONColumnType<RefMove[]> | null;
      /** Where the build gets its files first; null when they are in the app's repository. */
      source: JSONColumnType<BuildSource> | null;
      image_url: string | null;
      processes: JSONColumnType<Record<string, string>> | null;
      release_command: string | null;
      error: string | null;
      release_id: ReleaseId | null;
      /** Fencing token: counted up by each attempt; writes of an older attempt match no row. */
      attempt: Generated<number>;
      cancel_requested: Generated<boolean>;
      /** Number of the last line of the platform's that the log has; 0 before the first. */
      platform_line: Generated<number>;
      created_by: UserId;
      created_at: CreatedAt;
      started_at: Date | null;
      finished_at: Date | null;
    };
  }
}

export type BuildRow = Selectable<Tables['builds']>;
/** What names one attempt at a build. */
type Attempt = Pick<BuildRow, 'id' | 'attempt'>;

/** Statuses of a build that is not over. */
const open = ['queued', 'running'] as const satisfies readonly BuildStatus[];

/** Whether the build has succeeded, failed or was canceled. */
export function isBuildOver({ status }: Pick<BuildRow, 'status'>): boolean {
  return status !== 'queued' && status !== 'running';
}

export interface NewBuildRow {
  id: BuildId;
  app_id: AppId;
  cache_state: CacheState;
  pipeline: string;
  commit: string | null;
  branch: string | null;
  ref_changes: readonly RefMove[] | null;
  source: BuildSource | null;
  created_by: UserId;
  created_at: Date;
}

/** Adds a queued build. */
export async function insertBuild(trx: Db, { ref_changes, source, ...row }: NewBuildRow): Promise<BuildRow> {
  return trx
    .insertInto('builds')
    .values({
      ...row,
      status: 'queued',
      ref_changes: ref_changes === null ? null : JSON.stringify(ref_changes),
      source: source === null ? null : JSON.stringify(source),
      image_url: null,
      processes: null,
      release_command: null,
      error: null,
      release_id: null,
      started_at: null,
      finished_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** Undefined without such a build. */
export async function readBuildById(db: Db, buildId: BuildId): Promise<BuildRow | undefined> {
  return db.selectFrom('builds').selectAll().where('id', '=', buildId).executeTakeFirst();
}

/** As it stays until the transaction ends: no attempt begins meanwhile, and nobody cancels it. */
export async function lockBuild(trx: Db, buildId: BuildId): Promise<BuildRow | undefined> {
  return trx.selectFrom('builds').selectAll().where('id', '=', buildId).forUpdate().executeTakeFirst();
}

/** Newest first. */
export async function listBuilds(db: Db, { appId, before, limit }: KeysetPage & { appId: AppId }): Promise<BuildRow[]> {
  return db
    .selectFrom('builds')
    .selectAll()
    .where('app_id', '=', appId)
    .where(keysetBefore(before))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .execute();
}

/** A build with what its commit says, where that was read. */
export type ListedBuild = BuildRow & { commit_title: string | null; commit_author: string | null };

/** As `listBuilds`, for people. @param id this build only */
export async function listBuildsWithTitles(
  db: Db,
  { appId, before, limit, id }: KeysetPage & { appId: AppId; id?: BuildId },
): Promise<ListedBuild[]> {
  let select = db
    .selectFrom('builds')
    .innerJoin('apps', 'apps.id', 'builds.app_id')
    .leftJoin('commit_titles', (join) =>
      join.onRef('commit_titles.repository_id', '=', 'apps.repository_id').onRef('commit_titles.commit', '=', 'builds.commit'),
    )
    .selectAll('builds')
    .select(['commit_titles.title as commit_title', 'commit_titles.author as commit_author'])
    .where('builds.app_id', '=', appId)
    .where(keysetBefore(before, 'builds'));
  if (id !== undefined) select = select.where('builds.id', '=', id);
  return select.orderBy('builds.created_at', 'desc').orderBy('builds.id', 'desc').limit(limit).execute();
}

/** Builds that have not started find no cache any more. */
export async function markQueuedBuildsCold(trx: Db, appId: AppId): Promise<void> {
  await trx
    .updateTable('builds')
    .set({ cache_state: 'Cold' })
    .where('app_id', '=', appId)
    .where('status', '=', 'queued')
    .execute();
}

/** The build that was started last; undefined when there was none. */
export async function readLatestBuild(db: Db, appId: AppId): Promise<BuildRow | undefined> {
  const [latest] = await listBuilds(db, { appId, before: undefined, limit: 1 });
  return latest;
}

/** The release of the newest build that was started after this one and has made one. */
export async function readReleaseOfNewerBuild(
  db: Db,
  { app_id, created_at }: Pick<BuildRow, 'app_id' | 'created_at'>,
): Promise<ReleaseId | undefined> {
  const newer = await db
    .selectFrom('builds')
    .select('release_id')
    .where('app_id', '=', app_id)
    .where('created_at', '>', created_at)
    .where('release_id', 'is not', null)
    .orderBy('created_at', 'desc')
    .limit(1)
    .executeTakeFirst();
  return newer?.release_id ?? undefined;
}

/** Whether a build of the app runs; `except` does not count. */
export async function hasRunningBuild(db: Db, appId: AppId, except?: BuildId): Promise<boolean> {
  let select = db.selectFrom('builds').select('id').where('app_id', '=', appId).where('status', '=', 'running');
  if (except !== undefined) select = select.where('id', '!=', except);
  return (await select.limit(1).executeTakeFirst()) !== undefined;
}

/**
 * Takes a build for a new attempt: every write that names an older attempt matches no row from now on.
 * Undefined when it is over already.
 */
export async function claimBuild(db: Db, buildId: BuildId, now: Date): Promise<BuildRow | undefined> {
  return db
    .updateTable('builds')
    .set((build) => ({
      status: 'running',
      attempt: build('attempt', '+', 1),
      started_at: sql<Date>`coalesce(started_at, ${now})`,
    }))
    .where('id', '=', buildId)
    .where('status', 'in', open)
    .returningAll()
    .executeTakeFirst();
}

export type BuildEnd = Partial<Pick<BuildRow, 'error' | 'image_url' | 'release_command' | 'release_id' | 'processes'>> & {
  status: 'succeeded' | 'failed' | 'canceled';
};

/** False when another attempt has taken over, or the build is over: then nothing was written. */
export async function endBuild(db: Db, build: Attempt, { processes, ...end }: BuildEnd, now: Date): Promise<boolean> {
  const result = await db
    .updateTable('builds')
    .set({ ...end, finished_at: now, processes: processes == null ? null : JSON.stringify(processes) })
    .where('id', '=', build.id)
    .where('attempt', '=', build.attempt)
    .where('status', 'in', open)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** The commit that the source's ref named when it was fetched. */
export async function recordCommit(db: Db, buildId: BuildId, commit: ObjectId): Promise<void> {
  await db.updateTable('builds').set({ commit }).where('id', '=', buildId).execute();
}

/** Notes which source an attempt builds. */
export async function recordSource(db: Db, build: Attempt, source: BuildSource): Promise<void> {
  await db
    .updateTable('builds')
    .set({ source: JSON.stringify(source) })
    .where('id', '=', build.id)
    .where('attempt', '=', build.attempt)
    .execute();
}

/**
 * A statement that matches as long as no later attempt has begun, and records how far the log has come.
 * @param line number on the platform; undefined: the log has come no further
 */
export function fenceBuildLog({ id, attempt }: Attempt, line: number | undefined): RawBuilder<unknown> {
  return sql`update builds set platform_line = coalesce(${line ?? null}::int, platform_line)
    where id = ${id} and attempt = ${attempt} returning id`;
}

/** Before a build is started, also again: its lines are numbered from 1. False when a later attempt has begun or it is over. */
export async function restartBuildLog(db: Db, { id, attempt }: Attempt): Promise<boolean> {
  const result = await db
    .updateTable('builds')
    .set({ platform_line: 0 })
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'running')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Cancels the app's builds that wait. @returns their ids */
export async function cancelQueuedBuilds(trx: Db, appId: AppId, error: string, now: Date): Promise<BuildId[]> {
  const canceled = await trx
    .updateTable('builds')
    .set({ status: 'canceled', error, finished_at: now })
    .where('app_id', '=', appId)
    .where('status', '=', 'queued')
    .returning('id')
    .execute();
  return canceled.map(({ id }) => id);
}

/** Cancels a build that waits at once, and asks whoever runs another to end it. */
export async function requestCancel(db: Db, buildId: BuildId, error: string, now: Date): Promise<void> {
  await db
    .updateTable('builds')
    .set({ status: 'canceled', error, finished_at: now })
    .where('id', '=', buildId)
    .where('status', '=', 'queued')
    .execute();
  await db.updateTable('builds').set({ cancel_requested: true }).where('id', '=', buildId).execute();
}

/** Asks whoever runs or will run the app's builds to end them. */
export async function cancelOpenBuilds(db: Db, appId: AppId): Promise<void> {
  await db
    .updateTable('builds')
    .set({ cancel_requested: true })
    .where('app_id', '=', appId)
    .where('status', 'in', open)
    .execute();
}

/** Commits of builds of a repository's apps that are not over: what they are made of, and where refs are to move then. */
export async function listOpenBuildCommits(db: Db, repositoryId: RepositoryId): Promise<ObjectId[]> {
  const rows = await db
    .selectFrom('builds')
    .innerJoin('apps', 'apps.id', 'builds.app_id')
    .select(['builds.commit', 'builds.ref_changes'])
    .where('apps.repository_id', '=', repositoryId)
    .where('builds.status', 'in', open)
    .execute();
  const commits = rows.flatMap(({ commit, ref_changes }) => [commit, ...(ref_changes ?? []).map(({ to }) => to)]);
  return commits.filter((commit) => commit !== null) as ObjectId[];
}
