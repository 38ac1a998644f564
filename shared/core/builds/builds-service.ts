import type { Principal } from '#shared/core/accounts/principals.ts';
import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { type AppRow, lockApp } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { isArchive, toArchiveSource } from '#shared/core/builds/archive-source.ts';
import { createBuild, type NewBuild, withCaches } from '#shared/core/builds/build-creation.ts';
import { canceledMessage, cancelKey } from '#shared/core/builds/build-job.ts';
import { followBuildLog } from '#shared/core/builds/build-log.ts';
import type { Build, Builds } from '#shared/core/builds/builds.ts';
import {
  isBuildOver,
  type ListedBuild,
  listBuildsWithTitles,
  readBuildById,
  requestCancel,
} from '#shared/core/builds/builds-store.ts';
import { requireRoomForBuilds } from '#shared/core/builds/disk-rules.ts';
import { isImage, toImageSource } from '#shared/core/builds/image-source.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import { readBuildLog } from '#shared/core/telemetry/build-logs-store.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { type AppId, type BuildId, isUuid, newUuid, type ObjectId } from '#shared/ids.ts';
import { isOwnRepository } from '#shared/sources/git-url.ts';

const logPageLines = 1000;
const commitPattern = /^[0-9a-f]{40}$/;

/** The builds of apps and their logs. */
export function createBuilds(context: Context): Builds {
  const { db, git } = context;
  return {
    async startBuild(caller, app, { id = newUuid(), branch, commit, sourceUrl, sourceSha256, image }) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const before = await readBuildById(db, id);
      if (before?.app_id === row.id) return toBuild(await requireBuild(db, row.id, id));
      if (image !== undefined) {
        refuseTogether('image', { branch, commit, source_url: sourceUrl, source_sha256: sourceSha256 });
        const source = toImageSource(image);
        return start(context, principal, row, { id, commit: null, branch: null, source });
      }
      if (sourceUrl !== undefined) {
        refuseTogether('source_url', { branch, commit });
        const source = await toArchiveSource(context, row.id, { url: sourceUrl, sha256: sourceSha256 });
        return start(context, principal, row, { id, commit: null, branch: null, source });
      }
      if (sourceSha256 !== undefined)
        throw new AppError('validation_failed', 'There is a source_sha256 and no source_url that it could belong to.', {
          details: [{ path: 'source_sha256', message: 'needs a source_url' }],
        });
      if (commit !== undefined && !commitPattern.test(commit)) {
        throw new AppError('validation_failed', 'A commit is 40 hex digits, as `git rev-parse HEAD` prints.', {
          details: [{ path: 'commit', message: 'must be 40 hex digits' }],
        });
      }
      if (branch !== undefined) checkBranchName(branch);
      if (
        row.parent_app_id === null &&
        row.git_url !== null &&
        !isOwnRepository(row.git_url, context.addresses.pushUrl(row.name))
      ) {
        const from = { branch: branch ?? row.branch, commit: (commit as ObjectId) ?? null };
        const source = { url: row.git_url, ref: `refs/heads/${from.branch}`, commit: from.commit };
        return start(context, principal, row, { id, ...from, source });
      }
      const revision = commit ?? `refs/heads/${branch ?? row.branch}`;
      const resolved = await git.reader.resolveCommit(row.repository_id, revision);
      if (resolved === undefined) {
        const what = commit === undefined ? `the branch ${branch ?? row.branch}` : `the commit ${commit}`;
        throw new AppError(
          'conflict',
          `The app's repository does not have ${what}. Push it first: git push paas ${branch ?? row.branch}`,
        );
      }
      const of = { id, commit: resolved, branch: commit === undefined ? (branch ?? row.branch) : null };
      return start(context, principal, row, of);
    },

    async listBuilds(caller, app, page) {
      const { row } = await requireApp(context, caller, app);
      const rows = await listBuildsWithTitles(db, { appId: row.id, ...toKeysetPage(page) });
      return toPage(rows, page.limit, toBuild);
    },

    async readBuild(caller, app, build) {
      const { row } = await requireApp(context, caller, app);
      return toBuild(await requireBuild(db, row.id, build));
    },

    async readBuildLog(caller, app, build, { afterSeq = 0, limit = logPageLines }) {
      const { row } = await requireApp(context, caller, app);
      return readBuildLog(db, (await requireBuild(db, row.id, build)).id, { afterSeq, limit });
    },

    async followBuildLog(caller, app, build, { afterSeq = 0 }, signal) {
      const { row } = await requireApp(context, caller, app);
      return followBuildLog(context, (await requireBuild(db, row.id, build)).id, afterSeq, signal);
    },

    async cancelBuild(caller, app, build) {
      const { row } = await requireAppToChange(context, caller, app);
      const found = await requireBuild(db, row.id, build);
      if (isBuildOver(found)) throw new AppError('conflict', `The build is over already: it ${found.status}.`);
      await requestCancel(db, found.id, canceledMessage, context.clock.now());
      context.wakeups.wake(cancelKey(found.id));
      context.wakeups.wake(buildLogKey(found.id));
      return toBuild(await requireBuild(db, row.id, found.id));
    },
  };
}

/** Files from elsewhere are fetched when it runs: what cannot be had makes it fail then. */
async function start(
  context: Context,
  principal: Principal,
  { id }: AppRow,
  of: Pick<NewBuild, 'id' | 'commit' | 'branch' | 'source'>,
): Promise<Build> {
  await requireRoomForBuilds(context);
  const created = await withCaches(context, [id], (caches) =>
    context.db.transaction().execute(async (trx) => {
      const locked = await lockApp(trx, id);
      if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
      return createBuild(context, trx, locked, { ...of, caches, refChanges: null, createdBy: principal.userId });
    }),
  );
  return toBuild(await requireBuild(context.db, id, created.id));
}

/** A build is of one thing. */
function refuseTogether(given: string, others: Readonly<Record<string, unknown>>): void {
  const both = Object.keys(others).filter((name) => others[name] !== undefined);
  if (both.length === 0) return;
  throw new AppError('validation_failed', `A build is of a ${given}, or of a branch or commit: give one of them.`, {
    details: both.map((path) => ({ path, message: `cannot be given together with ${given}` })),
  });
}

/** A build of this very app: another app's build is not found here. */
async function requireBuild(db: Db, appId: AppId, build: string): Promise<ListedBuild> {
  const which = build === 'latest' ? {} : isUuid(build) ? { id: build as BuildId } : undefined;
  const [row] = which ? await listBuildsWithTitles(db, { appId, before: undefined, limit: 1, ...which }) : [];
  if (row === undefined) throw notFound('build');
  return row;
}

function toBuild(row: ListedBuild): Build {
  return {
    id: row.id,
    appId: row.app_id,
    status: row.status,
    cacheState: row.cache_state,
    pipeline: row.pipeline,
    commit: row.commit,
    commitTitle: row.commit_title,
    commitAuthor: row.commit_author,
    branch: row.branch,
    sourceUrl: isArchive(row.source) ? row.source.archiveUrl : null,
    sourceSha256: isArchive(row.source) ? (row.source.fetchedSha256 ?? row.source.sha256) : null,
    sourceImage: isImage(row.source) ? row.source.imageReference : null,
    imageUrl: row.image_url,
    error: row.error,
    releaseId: row.release_id,
    createdAt: row.created_at,
    startedAt: row.started_at,
    finishedAt: row.finished_at,
  };
}
