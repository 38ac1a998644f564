import { type AppRow, listPreviews, lockApp, setBranch } from '#shared/core/apps/apps-store.ts';
import { defaultBranch } from '#shared/core/apps/branch-name.ts';
import { listBuilds } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { RefChange } from '#shared/git/git-storage.ts';
import { isOwnRepository } from '#shared/sources/git-url.ts';

const branchPrefix = 'refs/heads/';

/**
 * The first push to an app decides which branch it is deployed from, unless somebody has chosen one: many repositories have `master`.
 * It takes the only branch of the push as that of an app without releases and builds. @returns the app as it is then
 */
export async function takeFirstBranch(context: Context, app: AppRow, commands: readonly RefChange[]): Promise<AppRow> {
  const branches = commands.filter(({ name, newOid }) => newOid !== undefined && name.startsWith(branchPrefix));
  const branch = branches[0]?.name.slice(branchPrefix.length);
  if (branch === undefined || branches.length > 1 || branch === app.branch || !mayTake(context, app)) return app;
  return context.db.transaction().execute(async (trx) => {
    const locked = await lockApp(trx, app.id);
    if (locked === undefined || !mayTake(context, locked)) return locked ?? app;
    const [build] = await listBuilds(trx, { appId: app.id, before: undefined, limit: 1 });
    if (build !== undefined || (await listPreviews(trx, app.id)).length > 0) return locked;
    await setBranch(trx, app.id, branch, context.clock.now());
    return { ...locked, branch };
  });
}

/** A branch other than the default was chosen, and so was one of a repository elsewhere. */
function mayTake({ addresses }: Context, { name, branch, git_url, current_release_id, deleted_at }: AppRow): boolean {
  const isOwn = git_url === null || isOwnRepository(git_url, addresses.pushUrl(name));
  return branch === defaultBranch && isOwn && current_release_id === null && deleted_at === null;
}
