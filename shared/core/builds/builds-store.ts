import { type RawBuilder, type Selectable, sql } from 'kysely';
import { type KeysetPage, keysetBefore } from '#shared/database/keyset.ts';
import type { Database, Db } from '#shared/database/schema.ts';
import type { AppId, BuildId } from '#shared/ids.ts';

export type BuildRow = Selectable<Database['builds']>;

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
    .where('status', 'in', ['queued', 'running'])
    .returningAll()
    .executeTakeFirst();
}

export type BuildEnd = Partial<Pick<BuildRow, 'error' | 'image_url' | 'release_command' | 'release_id'>> & {
  status: 'succeeded' | 'failed' | 'canceled';
  processes?: string;
};

/** False when another attempt has taken over, or the build is over: then nothing was written. */
export async function endBuild(db: Db, build: BuildRow, end: BuildEnd, now: Date): Promise<boolean> {
  const result = await db
    .updateTable('builds')
    .set({ ...end, finished_at: now })
    .where('id', '=', build.id)
    .where('attempt', '=', build.attempt)
    .where('status', 'in', ['queued', 'running'])
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

export function isBuildOver({ status }: Pick<BuildRow, 'status'>): boolean {
  return status !== 'queued' && status !== 'running';
}

/**
 * A statement that matches as long as no later attempt has begun, and records how far the log has come.
 * @param line number on the platform; undefined: the log has come no further
 */
export function fenceBuildLog({ id, attempt }: Pick<BuildRow, 'id' | 'attempt'>, line: number | undefined): RawBuilder<unknown> {
  return sql`update builds set platform_line = coalesce(${line ?? null}::int, platform_line)
    where id = ${id} and attempt = ${attempt} returning id`;
}

/** Before a build is started, also again: its lines are numbered from 1. False when a later attempt has begun or it is over. */
export async function restartBuildLog(db: Db, { id, attempt }: Pick<BuildRow, 'id' | 'attempt'>): Promise<boolean> {
  const result = await db
    .updateTable('builds')
    .set({ platform_line: 0 })
    .where('id', '=', id)
    .where('attempt', '=', attempt)
    .where('status', '=', 'running')
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Whoever runs or will run them ends them. */
export async function cancelOpenBuilds(db: Db, appId: AppId): Promise<void> {
  await db
    .updateTable('builds')
    .set({ cancel_requested: true })
    .where('app_id', '=', appId)
    .where('status', 'in', ['queued', 'running'])
    .execute();
}
