import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import type { BuildCacheService } from '#shared/core/builds/builds.ts';
import type { Context } from '#shared/core/context.ts';
import { AppError } from '#shared/errors.ts';
import { buildCacheName, buildNamespace } from '#shared/names.ts';

export function createBuildCache(context: Context): BuildCacheService {
  const { db, platform } = context;
  return {
    async readCache(caller, app) {
      const { id } = (await requireApp(context, caller, app)).row;
      return { appId: id, pvcName: buildCacheName(id), namespace: buildNamespace };
    },

    async flushCache(caller, app) {
      const { id } = (await requireAppToChange(context, caller, app)).row;
      const running = await db
        .selectFrom('builds')
        .select('id')
        .where('app_id', '=', id)
        .where('status', '=', 'running')
        .limit(1)
        .executeTakeFirst();
      if (running !== undefined) {
        throw new AppError('conflict', 'A build is using the cache. Wait for it, or cancel it with `paas builds:cancel`.');
      }
      const flushed = await db.transaction().execute(async (trx) => {
        await trx.updateTable('apps').set({ cache_begun: false }).where('id', '=', id).execute();
        return platform.caches.deleteCache(id);
      });
      const message = flushed ? 'Build cache flushed; the next build starts cold.' : 'There was no build cache to flush.';
      return { appId: id, flushed, message };
    },
  };
}
