import { markDeleted } from '#shared/core/apps/app-deletion-store.ts';
import { enqueuePurgeNow } from '#shared/core/apps/app-jobs.ts';
import { listPreviews } from '#shared/core/apps/apps-store.ts';
import { cancelOpenBuilds } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

/** Deletes the previews of deleted branches. They are purged at once, and cannot be restored. */
export async function removePreviews(
  context: Pick<Context, 'clock' | 'jobs'>,
  trx: Db,
  parentId: AppId,
  branches: readonly string[],
): Promise<void> {
  const removed = new Set(branches);
  const previews = await listPreviews(trx, parentId);
  for (const { id } of previews.filter(({ preview_branch }) => removed.has(preview_branch))) {
    await markDeleted(trx, id, context.clock.now());
    await cancelOpenBuilds(trx, id);
    await enqueuePurgeNow(context, trx, id);
  }
}
