import { requireApp, requireAppToChange } from '#shared/core/apps/app-access.ts';
import { lockApp } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import { toKeysetPage, toPage } from '#shared/core/page.ts';
import { type ListedDeploy, listDeploys } from '#shared/core/releases/deploys-store.ts';
import { createRelease, readReleaseConfig } from '#shared/core/releases/release-creation.ts';
import type { Deploy, Release, Releases } from '#shared/core/releases/releases.ts';
import {
  findRelease,
  type ListedRelease,
  listReleases,
  type ReleaseRow,
  readReleaseById,
} from '#shared/core/releases/releases-store.ts';
import { bootSettingsAsSet } from '#shared/core/releases/settings.ts';
import { writeSettings } from '#shared/core/releases/settings-store.ts';
import { writeVariables } from '#shared/core/releases/variables.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import { type AppId, newUuid, type ReleaseId } from '#shared/ids.ts';

/** The releases, deploys and rollbacks of apps. */
export function createReleases(context: Context): Releases {
  const { db } = context;
  return {
    async listReleases(caller, app, page) {
      const { row } = await requireApp(context, caller, app);
      const rows = await listReleases(db, { appId: row.id, ...toKeysetPage(page) });
      return toPage(rows, page.limit, toRelease);
    },

    async listDeploys(caller, app, page) {
      const { row } = await requireApp(context, caller, app);
      const rows = await listDeploys(db, { appId: row.id, ...toKeysetPage(page) });
      return toPage(rows, page.limit, toDeploy);
    },

    async rollBack(caller, app, release, id = newUuid()) {
      const { principal, row } = await requireAppToChange(context, caller, app);
      const before = await findRollback(db, row.id, id);
      if (before !== undefined) return before;
      const target = await findRelease(db, row.id, release);
      if (target === undefined) throw notFound('release');
      if (target.status === 'failed')
        throw new AppError('conflict', `v${target.version} never went live. Choose another release.`);
      if (target.image_collected_at !== null) throw imageIsCollected(context, target);
      if (!(await context.platform.images.imageExists(target.image_url))) {
        throw new AppError('conflict', `The image of v${target.version} is gone. Push that commit again instead.`);
      }
      const variables = await readReleaseConfig(context, target).catch((error: unknown) => {
        const what = `The variables of v${target.version} can no longer be read. Push that commit again instead.`;
        throw new AppError('conflict', what, { cause: error });
      });
      await db.transaction().execute(async (trx) => {
        const locked = await lockApp(trx, row.id);
        if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
        // It may have been given up since, under the same lock.
        const unchanged = await readReleaseById(trx, target.id);
        if (unchanged === undefined || unchanged.image_collected_at !== null) throw imageIsCollected(context, target);
        await writeVariables(context, trx, row.id, variables);
        await writeSettings(trx, row.id, bootSettingsAsSet(target.boot));
        await createRelease(context, trx, locked, {
          id,
          kind: 'rollback',
          image: target,
          description: `Rollback to v${target.version}`,
          createdBy: principal.userId,
          buildId: target.build_id,
          refChanges: null,
        });
      });
      const rolledBack = await findRollback(db, row.id, id);
      if (rolledBack === undefined) throw notFound('release');
      return rolledBack;
    },
  };
}

function imageIsCollected({ settings }: Context, { version, commit }: ReleaseRow): AppError {
  const what =
    commit === null ? 'Build its source again instead.' : `Build it again instead: paas builds:create --commit ${commit}`;
  return new AppError(
    'conflict',
    `The image of v${version} was deleted: the platform keeps those of an app's last ${settings.keptReleases} releases. ${what}`,
  );
}

async function findRollback(db: Db, appId: AppId, releaseId: ReleaseId) {
  const page = { appId, before: undefined, limit: 1, releaseId };
  const [release] = await listReleases(db, page);
  const [deploy] = await listDeploys(db, page);
  return release && deploy && { release: toRelease(release), deploy: toDeploy(deploy) };
}

function toRelease(row: ListedRelease): Release {
  return {
    id: row.id,
    version: row.version,
    status: row.status,
    kind: row.kind,
    commit: row.commit,
    commitTitle: row.commit_title,
    commitAuthor: row.commit_author,
    imageUrl: row.image_url,
    description: row.description,
    current: row.id === row.current_release_id,
    createdAt: row.created_at,
    createdBy: row.author_email ?? row.created_by,
  };
}

function toDeploy(row: ListedDeploy): Deploy {
  const isReplaced = row.status === 'live' && row.release_id !== row.current_release_id;
  return {
    id: row.id,
    releaseId: row.release_id,
    version: row.version,
    // Only one release serves: another has taken the place of those that were live before.
    status: isReplaced ? 'superseded' : row.status,
    weight: isReplaced ? 0 : row.weight,
    steps: row.steps,
    error: row.error,
    createdAt: row.created_at,
    finishedAt: row.finished_at,
  };
}
