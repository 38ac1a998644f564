import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { enqueueDeleteCache } from '#shared/core/apps/app-jobs.ts';
import { resetCache } from '#shared/core/apps/apps-store.ts';
import type { BuildCacheService } from '#shared/core/builds/builds.ts';
import { markQueuedBuildsCold } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId } from '#shared/ids.ts';
import { buildCacheName, buildNamespace } from '#shared/names.ts';

/** The build cache of an app, as its users see it. */
export function createBuildCache(context: Context): BuildCacheService {
  const { db, platform } = context;
  return {
    async readCache(caller, app) {
      const { id } = (await requireApp(context, caller, app)).row;
      return { appId: id, pvcName: buildCacheName(id), namespace: buildNamespace };
    },

    async flushCache(caller, app) {
      const { id } = (await requireAppToChange(context, caller, app)).row;
      const before = await platform.caches.readCache(id);
      await db.transaction().execute(async (trx) => {
        await resetCache(trx, id);
        await markQueuedBuildsCold(trx, id);
        // Where this process ends before it has deleted the volume: in the queue of the builds, so before the next one.
        await enqueueDeleteCache(context, trx, id);
      });
      // A build that runs goes on with the volume that it has; the platform deletes that with its end.
      const deleted = await platform.caches.deleteCache(id);
      // The job may have been faster.
      const flushed = deleted || before?.state === 'ready';
      return { appId: id, flushed, message: await describeFlush(context, id, flushed) };
    },
  };
}

async function describeFlush({ platform }: Context, appId: AppId, flushed: boolean): Promise<string> {
  if (flushed) return 'Build cache flushed; the next build starts cold.';
  const left = await platform.caches.readCache(appId);
  return left?.state === 'deleting' ? 'The build cache is being flushed already.' : 'There was no build cache to flush.';
}

/** Deletes the volume that a flush has found; harmless again. */
export async function runDeleteCacheJob({ platform }: Context, appId: AppId): Promise<void> {
  await platform.caches.deleteCache(appId);
}
