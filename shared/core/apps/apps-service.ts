import { requireRole } from '#shared/core/accounts/authorization.ts';
import { resolveCaller } from '#shared/core/accounts/callers.ts';
import { enqueueEnsureApp } from '#shared/core/apps/app-jobs.ts';
import { readChangedApp, toApp } from '#shared/core/apps/app-presentation.ts';
import { requireAppQuota } from '#shared/core/apps/app-quota.ts';
import type { Apps } from '#shared/core/apps/apps.ts';
import { insertApp, listApps, readAppById } from '#shared/core/apps/apps-store.ts';
import { checkBranchName, defaultBranch } from '#shared/core/apps/branch-name.ts';
import { requireAppOrDeleted, restorableSince } from '#shared/core/apps/deleted-apps.ts';
import { generateAppName } from '#shared/core/apps/generated-names.ts';
import { checkSourceAddress } from '#shared/core/apps/source-address.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { AppError } from '#shared/errors.ts';
import { newUuid, type RepositoryId } from '#shared/ids.ts';
import { checkAppName } from '#shared/names.ts';

/** How many generated names are tried: one that is taken was nobody's choice. */
const generatedNames = 5;

/** @param generateName for tests that need names which are taken */
export function createApps(context: Context, generateName: () => string = generateAppName): Apps {
  const { db, clock, addresses } = context;
  return {
    async createApp(caller, { id = newUuid(), name: wanted, gitUrl, branch = defaultBranch }) {
      const principal = await resolveCaller(context, caller);
      requireRole(principal, 'developer');
      const existing = await readAppById(db, id);
      if (existing?.tenant_id === principal.tenantId) return toApp(addresses, existing);
      if (wanted !== undefined) checkAppName(wanted);
      checkBranchName(branch);
      if (typeof gitUrl === 'string') await checkSourceAddress(context, gitUrl, 'git_url', wanted);
      const names = wanted === undefined ? Array.from({ length: generatedNames }, generateName) : [wanted];
      const now = clock.now();
      for (const name of names) {
        const inserted = await db.transaction().execute(async (trx) => {
          await requireAppQuota(context, trx, principal.tenantId);
          const isNew = await insertApp(trx, {
            id,
            tenant_id: principal.tenantId,
            name,
            git_url: gitUrl === undefined ? addresses.pushUrl(name) : gitUrl,
            branch,
            repository_id: id as string as RepositoryId,
            parent_app_id: null,
            preview_branch: null,
            created_by: principal.userId,
            created_at: now,
          });
          if (isNew) await enqueueEnsureApp(context, trx, id);
          return isNew;
        });
        if (inserted) return readChangedApp(context, id);
      }
      throw new AppError('conflict', `The name ${names.at(-1)} is taken. Choose another.`, {
        details: [{ path: 'name', message: 'is taken' }],
      });
    },

    async listApps(caller, page) {
      const { tenantId } = await resolveCaller(context, caller);
      const deletedSince = page.deleted === true ? restorableSince(clock.now()) : undefined;
      const rows = await listApps(db, { tenantId, deletedSince, ...toKeysetPage(page) });
      return toPage(rows, page.limit, (row) => toApp(addresses, row));
    },

    async readApp(caller, app) {
      return toApp(addresses, (await requireAppOrDeleted(context, caller, app)).row);
    },
  };
}
