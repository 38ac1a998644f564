import { deleteAppRow, isPurgeBegun, markPurgeBegun } from '#shared/core/apps/app-deletion-store.ts';
import { enqueuePurge } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, listPreviews, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { restorableUntil } from '#shared/core/apps/deleted-apps.ts';
import { listActiveHosts } from '#shared/core/apps/domains-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';
import { addonTypes } from '#shared/platform/addons.ts';

/**
 * Removes every trace of a deleted app that can no longer be restored. It does nothing for a restored app, and may run
 * again. From its first step on the row says that the app is being purged: nobody restores it while half of it is gone.
 */
export async function runPurgeJob(context: Context, appId: AppId): Promise<void> {
  const { db, platform, git, addresses } = context;
  const app = await beginPurge(context, appId);
  if (app === undefined) return;
  // Their rows are deleted with the app's; what they have on the platform would stay.
  for (const preview of await listPreviews(db, appId)) await runPurgeJob(context, preview.id);
  await platform.workloads.deleteWorkload(appId);
  for (const type of addonTypes) await platform.addons.deleteAddon(appId, type);
  await platform.logs.deleteLogs(appId);
  await platform.images.deleteImages(appId);
  await platform.caches.deleteCache(appId);
  if (app.parent_app_id === null) await git.deleteRepository(app.repository_id);
  for (const host of [addresses.appHost(app.name), ...(await listActiveHosts(db, appId))])
    await platform.certificates.deleteCertificate(host);
  await platform.appEnvironments.deleteApp(appId);
  await deleteAppRow(db, appId);
}

/** Undefined when there is nothing to purge, or not yet. */
async function beginPurge(context: Context, appId: AppId): Promise<AppRow | undefined> {
  return context.db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, appId);
    if (app === undefined || app.deleted_at === null) return undefined;
    const due = await purgeTime(trx, app, app.deleted_at);
    const now = context.clock.now();
    if (due <= now) {
      await markPurgeBegun(trx, appId, now);
      return app;
    }
    // It was restored and deleted again, and its time to be restored began anew.
    await enqueuePurge(context, trx, appId, due);
    return undefined;
  });
}

/** The preview of an active app was removed with its branch, and is purged at once, as are apps that somebody wants purged. */
async function purgeTime(db: Db, app: AppRow, deletedAt: Date): Promise<Date> {
  if (await isPurgeBegun(db, app.id)) return deletedAt;
  const parent = app.parent_app_id === null ? undefined : await readAppById(db, app.parent_app_id);
  return parent?.deleted_at === null ? deletedAt : restorableUntil(deletedAt);
}
