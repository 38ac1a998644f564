import { enqueuePurge } from '#shared/core/app-jobs.ts';
import { restorableUntil } from '#shared/core/apps/apps-service.ts';
import { type AppRow, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import type { AppId } from '#shared/ids.ts';
import { addonTypes } from '#shared/platform/addons.ts';

/**
 * Leaves nothing of a deleted app behind, once its time to be restored is over. Harmless again, and for a restored app.
 * It holds the app's lock throughout: whoever wants the app back while half of it is gone waits, and finds it gone.
 */
export async function runPurgeJob(context: Context, appId: AppId): Promise<void> {
  await context.db.transaction().execute((trx) => purge(context, trx, appId));
}

async function purge(context: Context, trx: Db, appId: AppId): Promise<void> {
  const { db, platform, git } = context;
  const app = await lockApp(trx, appId);
  if (app === undefined || app.deleted_at === null) return;
  const due = await purgeTime(context, app, app.deleted_at);
  if (due > context.clock.now()) {
    // Restored and deleted again meanwhile: its time began anew.
    await enqueuePurge(context, trx, appId, due);
    return;
  }
  // Their rows go with their app's; what they have on the ground would stay.
  const previews = await db.selectFrom('apps').select('id').where('parent_app_id', '=', appId).execute();
  for (const preview of previews) await runPurgeJob(context, preview.id);
  await platform.workloads.deleteWorkload(appId);
  for (const type of addonTypes) await platform.addons.deleteAddon(appId, type);
  await platform.logs.deleteLogs(appId);
  await platform.images.deleteImages(appId);
  await platform.caches.deleteCache(appId);
  if (app.parent_app_id === null) await git.deleteRepository(app.repository_id);
  await trx.deleteFrom('apps').where('id', '=', appId).execute();
}

/** A preview whose app lives went with its branch: at once. */
async function purgeTime({ db }: Context, app: AppRow, deletedAt: Date): Promise<Date> {
  const parent = app.parent_app_id === null ? undefined : await readAppById(db, app.parent_app_id);
  return parent?.deleted_at === null ? deletedAt : restorableUntil(deletedAt);
}
