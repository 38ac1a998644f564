import { requireBuildQuota } from '#shared/core/accounts/quotas.ts';
import { readFirstTenantId } from '#shared/core/accounts/tenants-store.ts';
import { enqueueBuild } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, beginCache, readAppById } from '#shared/core/apps/apps-store.ts';
import { reportBuild } from '#shared/core/builds/build-report.ts';
import { addBuildStart } from '#shared/core/builds/build-starts-store.ts';
import type { BuildSource } from '#shared/core/builds/builds.ts';
import { type BuildRow, cancelQueuedBuilds, insertBuild } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import { type AppId, type BuildId, newUuid, type ObjectId, type TenantId, type UserId } from '#shared/ids.ts';

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

/** What a build's row says that was superseded: users and pushes see it. */
export const supersededMessage = 'Superseded by a newer push.';

/** How the caches of apps were found before the transaction that starts builds of them. */
export type FoundCaches = ReadonlyMap<AppId, 'created' | 'existed' | 'deleting'>;

/**
 * Ensures the caches of the apps that builds are started of, then calls `start`, which opens the transaction: nothing of
 * the platform is called inside one. An app that is only made in that transaction has no cache and needs none here.
 */
export async function withCaches<Result>(
  context: Context,
  appIds: readonly AppId[],
  start: (caches: FoundCaches) => Promise<Result>,
): Promise<Result> {
  const { platform, log } = context;
  const caches = new Map<AppId, 'created' | 'existed' | 'deleting'>();
  for (const appId of appIds) caches.set(appId, (await platform.caches.ensureCache(appId)).state);
  try {
    return await start(caches);
  } finally {
    // An app that was purged meanwhile would leave its new cache behind.
    const created = [...caches].flatMap(([appId, state]) => (state === 'created' ? appId : []));
    await deleteCachesOfPurged(context, created).catch((error: unknown) =>
      log.warn('The cache of an app that is gone could not be deleted.', { error }),
    );
  }
}

async function deleteCachesOfPurged({ db, platform }: Context, appIds: readonly AppId[]): Promise<void> {
  for (const appId of appIds) if ((await readAppById(db, appId)) === undefined) await platform.caches.deleteCache(appId);
}

/**
 * Decides Cold or Warm, counts the start, and adds the build's row and job, in the caller's transaction, which must hold
 * the app's lock. Builds of one app run one after the other; of those that wait only the newest is kept.
 * @param build with `caches` of `withCaches`, which the transaction is inside of
 * @throws AppError `forbidden` for all but the operator's apps where there is no sandbox, and beyond the tenant's builds an hour
 */
export async function createBuild(
  context: Context,
  trx: Db,
  app: AppRow,
  build: NewBuild & { caches: FoundCaches },
): Promise<BuildRow> {
  const { clock, platform, wakeups } = context;
  if (!platform.capabilities.sandbox) await requireOperator(trx, app.tenant_id);
  await requireBuildQuota(context, trx, app.tenant_id);
  // A volume outlives a transaction that is rolled back: without a build it was created for, nothing has filled it.
  const begun = await beginCache(trx, app.id);
  // The build that has begun it has created it, or will: of an app that is not among `caches` its job comes before.
  const isWarm = begun && (build.caches.get(app.id) ?? 'existed') === 'existed';
  const { pipeline } = platform.capabilities;
  await addBuildStart(trx, { cacheState: isWarm ? 'warm' : 'cold', pipeline });
  const now = clock.now();
  const superseded = await cancelQueuedBuilds(trx, app.id, supersededMessage, now);
  const row = await insertBuild(trx, {
    id: build.id ?? newUuid(),
    app_id: app.id,
    cache_state: isWarm ? 'Warm' : 'Cold',
    pipeline,
    commit: build.commit,
    branch: build.branch,
    ref_changes: build.refChanges,
    source: build.source ?? null,
    created_by: build.createdBy,
    created_at: now,
  });
  await enqueueBuild(context, trx, app.id, row.id);
  await reportBuild(context, trx, row);
  for (const id of superseded) {
    await reportBuild(context, trx, { ...row, id });
    wakeups.wake(buildLogKey(id));
  }
  return row;
}

/** Code that cannot be confined runs with the operator's rights: only the operator's own, who signed up first. */
async function requireOperator(db: Db, tenantId: TenantId): Promise<void> {
  if ((await readFirstTenantId(db)) === tenantId) return;
  throw new AppError('forbidden', 'This platform has no sandbox, so it builds for its operator only.');
}
