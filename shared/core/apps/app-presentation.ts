import type { Addresses } from '#shared/core/addresses.ts';
import type { App } from '#shared/core/apps/apps.ts';
import { type AppRow, readAppById } from '#shared/core/apps/apps-store.ts';
import { restorableUntil } from '#shared/core/apps/deleted-apps.ts';
import type { Context } from '#shared/core/context.ts';
import { notFound } from '#shared/errors.ts';
import type { AppId } from '#shared/ids.ts';

/** The app as entry points see it, read again after a change. @throws AppError `not_found` when it was purged meanwhile */
export async function readChangedApp({ db, addresses }: Pick<Context, 'db' | 'addresses'>, appId: AppId): Promise<App> {
  const row = await readAppById(db, appId);
  if (row === undefined) throw notFound('app');
  return toApp(addresses, row);
}

/** The app of a row, with its addresses. */
export function toApp(addresses: Addresses, row: AppRow): App {
  return {
    id: row.id,
    name: row.name,
    tenantId: row.tenant_id,
    gitUrl: row.git_url,
    pushUrl: addresses.pushUrl(row.name),
    branch: row.branch,
    subdomain: addresses.subdomain(row.name),
    webUrl: addresses.webUrl(row.name),
    status: row.deleted_at === null ? 'active' : 'deleted',
    currentRelease:
      row.current_release_id === null || row.current_version === null
        ? null
        : { id: row.current_release_id, version: row.current_version },
    preview: row.parent_app_id === null ? null : { parentAppId: row.parent_app_id, branch: row.preview_branch ?? row.branch },
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
    restorableUntil: row.deleted_at === null ? null : restorableUntil(row.deleted_at),
  };
}
