import { requireApp } from '#shared/core/apps/app-access.ts';
import type { Context } from '#shared/core/context.ts';
import type { Commits } from '#shared/core/repositories/commits.ts';
import { notFound } from '#shared/errors.ts';
import type { ObjectId, RepositoryId } from '#shared/ids.ts';

/** Commits and files of an app's repository, for people who look at a release. */
export function createCommits(context: Context): Commits {
  const { git } = context;

  async function resolve(repositoryId: RepositoryId, revision: string): Promise<ObjectId> {
    const commit = await git.reader.resolveCommit(repositoryId, revision);
    if (commit === undefined) throw notFound('revision');
    return commit;
  }

  return {
    async readCommit(caller, app, revision) {
      const { repository_id } = (await requireApp(context, caller, app)).row;
      return git.browser.readCommit(repository_id, await resolve(repository_id, revision));
    },

    async readPath(caller, app, revision, path) {
      const { repository_id } = (await requireApp(context, caller, app)).row;
      const commit = await resolve(repository_id, revision);
      const found = await git.browser.readPath(repository_id, commit, path);
      const place = { path: path.split('/').filter(Boolean).join('/'), commit };
      return Array.isArray(found) ? { kind: 'directory', ...place, entries: found } : { ...found, ...place };
    },

    async compare(caller, app, base, head) {
      const { repository_id } = (await requireApp(context, caller, app)).row;
      const [from, to] = [await resolve(repository_id, base), await resolve(repository_id, head)];
      return git.browser.compare(repository_id, from, to);
    },
  };
}
