import { enqueueBuild } from '#shared/core/app-jobs.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { addBuildStart } from '#shared/core/builds/build-starts-store.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import type { BuildSource, Db, RefMove } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import { type BuildId, newUuid, type ObjectId, type UserId } from '#shared/ids.ts';

export interface NewBuild {
  /** Left out: a new one. */
  id?: BuildId;
  /** Null: what the source's ref names once the build runs. */
  commit: ObjectId | null;
  branch: string | null;
  /** Refs that move with the build's success. */
  refChanges: readonly RefMove[] | null;
  /** Where the files come from when that is not the app's repository here. */
  source?: BuildSource;
  createdBy: UserId;
}

export const supersededMessage = 'Superseded by a newer push.';

/**
 * Decides Cold or Warm, counts the start, and adds the build's row and job, in the caller's transaction (which must hold
 * the app's lock).
 * Builds of one app run one after the other; of those that wait only the newest is kept.
 */
export async function createBuild(context: Context, trx: Db, app: AppRow, build: NewBuild): Promise<BuildRow> {
  const { clock, platform, wakeups } = context;
  if (!platform.capabilities.sandbox) await requireOperator(trx, app);
  const { existed } = await platform.caches.ensureCache(app.id);
  // The volume stays where a transaction is rolled back: without a build it was made for, nothing has filled it.
  const isWarm = (await beginCache(trx, app)) && existed;
  await addBuildStart(trx, { cacheState: isWarm ? 'warm' : 'cold', pipeline: platform.capabilities.pipeline });
  const now = clock.now();
  const superseded = await trx
    .updateTable('builds')
    .set({ status: 'canceled', error: supersededMessage, finished_at: now })
    .where('app_id', '=', app.id)
    .where('status', '=', 'queued')
    .returning('id')
    .execute();
  const row = await trx
    .insertInto('builds')
    .values({
      id: build.id ?? newUuid(),
      app_id: app.id,
      status: 'queued',
      cache_state: isWarm ? 'Warm' : 'Cold',
      pipeline: platform.capabilities.pipeline,
      commit: build.commit,
      branch: build.branch,
      ref_changes: build.refChanges === null ? null : JSON.stringify(build.refChanges),
      source: build.source === undefined ? null : JSON.stringify(build.source),
      image_url: null,
      processes: null,
      release_command: null,
      error: null,
      release_id: null,
      created_by: build.createdBy,
      created_at: now,
      started_at: null,
      finished_at: null,
    })
    .returningAll()
    .executeTakeFirstOrThrow();
  await enqueueBuild(context, trx, app.id, row.id);
  for (const { id } of superseded) wakeups.wake(buildLogKey(id));
  return row;
}

/** @returns whether a build before has begun it */
async function beginCache(trx: Db, { id }: AppRow): Promise<boolean> {
  const first = await trx
    .updateTable('apps')
    .set({ cache_begun: true })
    .where('id', '=', id)
    .where('cache_begun', '=', false)
    .executeTakeFirst();
  return first.numUpdatedRows === 0n;
}

/** Code that cannot be confined runs with the operator's rights: only the operator's own, who signed up first. */
async function requireOperator(trx: Db, app: AppRow): Promise<void> {
  const operator = await trx.selectFrom('tenants').select('id').orderBy('created_at').limit(1).executeTakeFirst();
  if (operator?.id === app.tenant_id) return;
  throw new AppError('forbidden', 'This platform has no sandbox, so it builds for its operator only.');
}
