import type { Db } from '#shared/database/db.ts';
import type { AppId } from '#shared/ids.ts';

/** Marks an active app and its active previews deleted, and returns their ids. */
export async function markDeletedWithPreviews(trx: Db, appId: AppId, now: Date): Promise<AppId[]> {
  const rows = await trx
    .updateTable('apps')
    .set({ deleted_at: now, updated_at: now })
    .where((where) => where.or([where('id', '=', appId), where('parent_app_id', '=', appId)]))
    .where('deleted_at', 'is', null)
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** Takes back what `markDeletedWithPreviews` did at `deletedAt`, unless a purge has begun, and returns the ids. */
export async function markRestoredWithPreviews(trx: Db, appId: AppId, deletedAt: Date, now: Date): Promise<AppId[]> {
  const rows = await trx
    .updateTable('apps')
    .set({ deleted_at: null, updated_at: now })
    .where((where) => where.or([where('id', '=', appId), where('parent_app_id', '=', appId)]))
    .where('deleted_at', '=', deletedAt)
    .where('purge_begun_at', 'is', null)
    .returning('id')
    .execute();
  return rows.map(({ id }) => id);
}

/** Marks an app as deleted. It can be restored until it is purged. */
export async function markDeleted(trx: Db, appId: AppId, now: Date): Promise<void> {
  await trx.updateTable('apps').set({ deleted_at: now, updated_at: now }).where('id', '=', appId).execute();
}

/** False when the app was purged, or its purge has begun. */
export async function markRestored(trx: Db, appId: AppId, now: Date): Promise<boolean> {
  const result = await trx
    .updateTable('apps')
    .set({ deleted_at: null, updated_at: now })
    .where('id', '=', appId)
    .where('purge_begun_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Records that a deleted app is being purged: it can no longer be restored. */
export async function markPurgeBegun(trx: Db, appId: AppId, now: Date): Promise<void> {
  await trx.updateTable('apps').set({ purge_begun_at: now }).where('id', '=', appId).execute();
}

/** Whether the app is being purged, or shall be. */
export async function isPurgeBegun(trx: Db, appId: AppId): Promise<boolean> {
  const row = await trx.selectFrom('apps').select('purge_begun_at').where('id', '=', appId).executeTakeFirst();
  return row !== undefined && row.purge_begun_at !== null;
}

/** Removes the app's row, and by foreign keys every row of the app and its previews. */
export async function deleteAppRow(trx: Db, appId: AppId): Promise<void> {
  await trx.deleteFrom('apps').where('id', '=', appId).execute();
}
