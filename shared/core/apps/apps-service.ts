import { requireRole } from '#shared/core/accounts/authorization.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import type { Caller } from '#shared/core/accounts/principals.ts';
import { enqueueAddonJobs } from '#shared/core/addons/addon-job.ts';
import { enqueueEnsureWorkload, enqueuePurge } from '#shared/core/app-jobs.ts';
import { type AppAccess, requireApp, requireAppToChange, resolveCallerAndApp } from '#shared/core/apps/app-access.ts';
import type { App, Apps } from '#shared/core/apps/apps.ts';
import { type AppRow, listApps, readAppById } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { generateAppName } from '#shared/core/apps/generated-names.ts';
import { cancelOpenBuilds } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { deletionKey } from '#shared/core/releases/deploy-job.ts';
import { forgetHostKeys } from '#shared/core/repositories/source-keys.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { type AppId, newUuid, type RepositoryId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { checkAppName } from '#shared/names.ts';
import { checkGitUrl } from '#shared/sources/git-url.ts';

const dayMilliseconds = 24 * 60 * 60 * 1000;
/** A generated name that is taken is nobody's choice: another one is tried, so often. */
const generatedNames = 5;

export function createApps(context: Context, generateName: () => string = generateAppName): Apps {
  const { db, clock } = context;
  const present = (row: AppRow): App => toApp(context, row);
  const reread = async (appId: AppId): Promise<App> => {
    const row = await readAppById(db, appId);
    if (row === undefined) throw notFound('app');
    return present(row);
  };

  return {
    async createApp(caller, { id = newUuid(), name: wanted, gitUrl, branch = 'main' }) {
      const principal = await resolveCaller(context, caller);
      requireRole(principal, 'developer');
      const before = await readAppById(db, id);
      if (before?.tenant_id === principal.tenantId) return present(before);
      if (wanted !== undefined) checkAppName(wanted);
      checkBranchName(branch);
      if (typeof gitUrl === 'string') checkGitUrl(gitUrl, 'git_url');
      const names = wanted === undefined ? Array.from({ length: generatedNames }, generateName) : [wanted];
      const now = clock.now();
      for (const name of names) {
        const made = await db
          .insertInto('apps')
          .values({
            id,
            tenant_id: principal.tenantId,
            name,
            git_url: gitUrl === undefined ? context.addresses.pushUrl(name) : gitUrl,
            branch,
            repository_id: id as string as RepositoryId,
            parent_app_id: null,
            preview_branch: null,
            current_release_id: null,
            created_by: principal.userId,
            created_at: now,
            updated_at: now,
            deleted_at: null,
          })
          .onConflict((conflict) => conflict.column('name').doNothing())
          .executeTakeFirst();
        if ((made.numInsertedOrUpdatedRows ?? 0n) > 0n) return reread(id);
      }
      throw new AppError('conflict', `The name ${names.at(-1)} is taken. Choose another.`, {
        details: [{ path: 'name', message: 'is taken' }],
      });
    },

    async listApps(caller, page) {
      const principal = await resolveCaller(context, caller);
      const rows = await listApps(db, {
        tenantId: principal.tenantId,
        deletedSince: page.deleted === true ? restorableSince(clock.now()) : undefined,
        ...toKeysetPage(page),
      });
      return toPage(rows, page.limit, present);
    },

    async readApp(caller, app) {
      return present((await requireAppEvenDeleted(context, caller, app)).row);
    },

    async deleteApp(caller, app) {
      const { principal, row } = await requireApp(context, caller, app);
      requireRole(principal, 'admin');
      await db.transaction().execute(async (trx) => {
        const now = clock.now();
        const gone = await trx
          .updateTable('apps')
          .set({ deleted_at: now, updated_at: now })
          .where((where) => where.or([where('id', '=', row.id), where('parent_app_id', '=', row.id)]))
          .where('deleted_at', 'is', null)
          .returning('id')
          .execute();
        for (const { id } of gone) {
          await cancelOpenBuilds(trx, id);
          await enqueueEnsureWorkload(context, trx, id);
          await enqueueAddonJobs(context, trx, id);
          await enqueuePurge(context, trx, id, restorableUntil(now));
        }
      });
      context.wakeups.wake(deletionKey(row.id));
      return reread(row.id);
    },

    async restoreApp(caller, app) {
      const { principal, row } = await requireAppEvenDeleted(context, caller, app);
      requireRole(principal, 'admin');
      if (row.deleted_at === null) throw new AppError('conflict', `${row.name} is not deleted.`);
      const deletedAt = row.deleted_at;
      const parent = row.parent_app_id === null ? undefined : await readAppById(db, row.parent_app_id);
      if (parent !== undefined && parent.deleted_at !== null) {
        throw new AppError('conflict', `${row.name} is a preview of ${parent.name}, which is deleted: restore that.`);
      }
      await db.transaction().execute(async (trx) => {
        // Its previews went with it in the same moment, and come back with it.
        const back = await trx
          .updateTable('apps')
          .set({ deleted_at: null, updated_at: clock.now() })
          .where((where) => where.or([where('id', '=', row.id), where('parent_app_id', '=', row.id)]))
          .where('deleted_at', '=', deletedAt)
          .returning('id')
          .execute();
        for (const { id } of back) {
          await enqueueAddonJobs(context, trx, id);
          await enqueueEnsureWorkload(context, trx, id);
        }
      });
      return reread(row.id);
    },

    async setGitSource(caller, app, { url, branch }) {
      const { row } = await requireAppToChange(context, caller, app);
      if (branch !== undefined) checkBranchName(branch);
      if (url !== null) checkGitUrl(url, 'url');
      await db
        .updateTable('apps')
        .set({ git_url: url, ...(branch === undefined ? {} : { branch }), updated_at: clock.now() })
        .where('id', '=', row.id)
        .execute();
      await forgetHostKeys(db, row.id);
      return reread(row.id);
    },
  };
}

/** An app of the caller's tenant, also a deleted one that can be restored. */
async function requireAppEvenDeleted(context: Context, caller: Caller, app: string): Promise<AppAccess> {
  const { principal, row } = await resolveCallerAndApp(context, caller, app);
  const isPurged = row !== undefined && row.deleted_at !== null && row.deleted_at <= restorableSince(context.clock.now());
  if (row === undefined || row.tenant_id !== principal.tenantId || isPurged) throw notFound('app');
  return { principal, row };
}

export function restorableUntil(deletedAt: Date): Date {
  return new Date(deletedAt.getTime() + limits.app.restoreDays * dayMilliseconds);
}

function restorableSince(now: Date): Date {
  return new Date(now.getTime() - limits.app.restoreDays * dayMilliseconds);
}

function toApp({ addresses }: Context, row: AppRow): App {
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
