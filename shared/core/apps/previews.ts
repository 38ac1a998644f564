import { sql } from 'kysely';
import { enqueuePurgeNow } from '#shared/core/app-jobs.ts';
import { type AppRow, readAppById } from '#shared/core/apps/apps-store.ts';
import { cancelOpenBuilds } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/schema.ts';
import { AppError } from '#shared/errors.ts';
import { type AppId, newUuid, type UserId } from '#shared/ids.ts';
import { previewName } from '#shared/names.ts';

/**
 * The preview app of a branch, made or brought back. It shares the repository and nothing else: a branch may hold
 * anybody's code, so it gets none of the app's variables and add-ons (set its own with `paas config:set -a <preview>`).
 */
export async function ensurePreview(
  context: Context,
  trx: Db,
  parent: AppRow,
  branch: string,
  createdBy: UserId,
): Promise<AppRow> {
  const existing = await findPreview(trx, parent.id, branch);
  const now = context.clock.now();
  if (existing !== undefined) {
    // While it is purged this waits; then there is nothing to bring back.
    const back = await trx
      .updateTable('apps')
      .set({ deleted_at: null, updated_at: now })
      .where('id', '=', existing)
      .executeTakeFirst();
    if (back.numUpdatedRows > 0n) return requireRow(trx, existing);
  }
  const id = newUuid<AppId>();
  const row = {
    id,
    tenant_id: parent.tenant_id,
    git_url: null,
    branch,
    repository_id: parent.repository_id,
    parent_app_id: parent.id,
    preview_branch: branch,
    current_release_id: null,
    created_by: createdBy,
    created_at: now,
    updated_at: now,
    deleted_at: null,
  };
  for (const name of namesFor(previewName(parent.name, branch))) {
    // Somebody else may take the name in this moment: then the insert waits for them to commit, and the next is tried.
    const made = await trx
      .insertInto('apps')
      .values({ ...row, name })
      .onConflict((conflict) => conflict.column('name').doNothing())
      .executeTakeFirst();
    if ((made.numInsertedOrUpdatedRows ?? 0n) > 0n) break;
  }
  return requireRow(trx, id);
}

/** When branches are deleted their previews go with them, now and for good. */
export async function removePreviews(context: Context, trx: Db, parentId: AppId, branches: readonly string[]): Promise<void> {
  const now = context.clock.now();
  const previews = await trx
    .selectFrom('apps')
    .select('id')
    .where('parent_app_id', '=', parentId)
    .where('preview_branch', '=', sql<string>`any(${branches}::text[])`)
    .execute();
  for (const { id } of previews) {
    await trx.updateTable('apps').set({ deleted_at: now, updated_at: now }).where('id', '=', id).execute();
    await cancelOpenBuilds(trx, id);
    await enqueuePurgeNow(context, trx, id);
  }
}

async function findPreview(db: Db, parentId: AppId, branch: string): Promise<AppId | undefined> {
  const row = await db
    .selectFrom('apps')
    .select('id')
    .where('parent_app_id', '=', parentId)
    .where('preview_branch', '=', branch)
    .executeTakeFirst();
  return row?.id;
}

async function requireRow(db: Db, appId: AppId): Promise<AppRow> {
  const row = await readAppById(db, appId);
  if (row === undefined) throw new AppError('internal', 'The preview could not be made.');
  return row;
}

/** Two branches can be cut to one name, and somebody's app may have it: then a number is put behind. */
function* namesFor(wanted: string): Generator<string> {
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? '' : `-${count}`;
    yield wanted.slice(0, 40 - suffix.length).replace(/-+$/, '') + suffix;
  }
}
