import { requireRole } from '#shared/core/accounts/authorization.ts';
import { enqueueAddonJobs } from '#shared/core/addons/addon-job.ts';
import { requireApp } from '#shared/core/apps/app-access.ts';
import { markDeletedWithPreviews, markPurgeBegun, markRestoredWithPreviews } from '#shared/core/apps/app-deletion-store.ts';
import { enqueueEnsureApp, enqueueEnsureWorkload, enqueuePurge, enqueuePurgeNow } from '#shared/core/apps/app-jobs.ts';
import { readChangedApp } from '#shared/core/apps/app-presentation.ts';
import type { AppDeletion } from '#shared/core/apps/apps.ts';
import { listPreviews, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { deletionKey, requireAppOrDeleted, restorableUntil } from '#shared/core/apps/deleted-apps.ts';
import { cancelOpenBuilds } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { restoreWithinQuotas } from '#shared/core/deletion/restore-quota.ts';
import { AppError, notFound } from '#shared/errors.ts';

/** Deletes and restores apps. */
export function createAppDeletion(context: Context): AppDeletion {
  const { db, clock, wakeups } = context;
  return {
    async deleteApp(caller, app, { purge = false } = {}) {
      const { principal, row } = await (purge ? requireAppOrDeleted : requireApp)(context, caller, app);
      requireRole(principal, 'admin');
      await db.transaction().execute(async (trx) => {
        const now = clock.now();
        await lockApp(trx, row.id);
        for (const id of await markDeletedWithPreviews(trx, row.id, now)) {
          await cancelOpenBuilds(trx, id);
          await enqueueEnsureWorkload(context, trx, id);
          await enqueueAddonJobs(context, trx, id);
          await enqueuePurge(context, trx, id, restorableUntil(now));
        }
        if (!purge) return;
        // Those of its previews are purged with it.
        for (const { id } of [row, ...(await listPreviews(trx, row.id))]) await markPurgeBegun(trx, id, now);
        await enqueuePurgeNow(context, trx, row.id);
      });
      wakeups.wake(deletionKey(row.id));
      const deleted = await readChangedApp(context, row.id);
      return purge ? { ...deleted, restorableUntil: null } : deleted;
    },

    async restoreApp(caller, app) {
      const { principal, row } = await requireAppOrDeleted(context, caller, app);
      requireRole(principal, 'admin');
      const { id, name, deleted_at: deletedAt, parent_app_id: parentId } = row;
      if (deletedAt === null) throw new AppError('conflict', `${name} is not deleted.`);
      const parent = parentId === null ? undefined : await readAppById(db, parentId);
      if (parent !== undefined && parent.deleted_at !== null) {
        throw new AppError('conflict', `${name} is a preview of ${parent.name}, which is deleted. Restore ${parent.name}.`);
      }
      await db.transaction().execute(async (trx) => {
        // Apps are locked before their tenant, as everywhere.
        await lockApp(trx, id);
        const ids = await restoreWithinQuotas(context, trx, row, () => markRestoredWithPreviews(trx, id, deletedAt, clock.now()));
        if (!ids.includes(id)) throw notFound('app');
        for (const restored of ids) {
          await enqueueEnsureApp(context, trx, restored);
          await enqueueAddonJobs(context, trx, restored);
          await enqueueEnsureWorkload(context, trx, restored);
        }
      });
      return readChangedApp(context, id);
    },
  };
}
