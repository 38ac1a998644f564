import { markRestored } from '#shared/core/apps/app-deletion-store.ts';
import { enqueueEnsureApp } from '#shared/core/apps/app-jobs.ts';
import { type AppRow, findPreviewId, insertApp, listPreviews, readAppById } from '#shared/core/apps/apps-store.ts';
import type { Context } from '#shared/core/context.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import { type AppId, newUuid, type UserId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import { maxAppNameLength, previewName } from '#shared/names.ts';

/**
 * The branches that may have a preview: those that have an active one, and others as long as there is room. A mirror of a
 * repository with hundreds of branches must not start hundreds of apps.
 * @param trx holds the app's lock
 * @param leaving branches whose previews are removed in the same transaction: they make room
 */
export async function choosePreviewBranches(
  trx: Db,
  parentId: AppId,
  branches: readonly string[],
  leaving: readonly string[] = [],
): Promise<ReadonlySet<string>> {
  const previews = await listPreviews(trx, parentId);
  const active = previews.filter(({ deleted_at }) => deleted_at === null).map(({ preview_branch }) => preview_branch);
  const staying = new Set(active.filter((branch) => !leaving.includes(branch)));
  const room = Math.max(limits.app.previews - staying.size, 0);
  const added = branches.filter((branch) => !staying.has(branch)).slice(0, room);
  return new Set([...branches.filter((branch) => staying.has(branch)), ...added]);
}

/** Why a branch gets no preview, for whoever pushed it. */
export function tooManyPreviewsMessage(branch: string): string {
  return `The app has ${limits.app.previews} previews, the most it can have. Delete a branch to make room for ${branch}.`;
}

/** The earlier preview of a branch is being purged: a new one needs its name and its address. */
export class PurgeUnderWay extends AppError {
  readonly appId: AppId;

  constructor(appId: AppId, branch: string) {
    super('conflict', `The earlier preview of ${branch} is still being removed. Try again in a minute.`);
    this.appId = appId;
  }
}

const purgePollMilliseconds = 100;
const longestPurgeMilliseconds = 60_000;

/**
 * Does work that ensures previews in a transaction, and again once the purge is over that it met.
 * @throws AppError `conflict` when that takes more than a minute
 */
export async function afterPurges<Result>(
  { clock, log }: Pick<Context, 'clock' | 'log'>,
  work: () => Promise<Result>,
): Promise<Result> {
  const deadline = clock.now().getTime() + longestPurgeMilliseconds;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PurgeUnderWay) || clock.now().getTime() > deadline) throw error;
      log.debug('A push waits until the earlier preview is purged.', { appId: error.appId });
      await clock.sleep(purgePollMilliseconds);
    }
  }
}

/**
 * The preview app of a branch, created or restored. It shares the repository and nothing else: anybody's code may be in a
 * branch, so the preview gets none of the app's variables and add-ons (`paas config:set -a <preview>` sets its own).
 * @throws PurgeUnderWay; see `afterPurges`
 */
export async function ensurePreview(
  context: Pick<Context, 'clock' | 'jobs'>,
  trx: Db,
  parent: AppRow,
  branch: string,
  createdBy: UserId,
): Promise<AppRow> {
  const now = context.clock.now();
  const existing = await findPreviewId(trx, parent.id, branch);
  if (existing !== undefined && (await markRestored(trx, existing, now))) {
    await enqueueEnsureApp(context, trx, existing);
    return requireRow(trx, existing);
  }
  if (existing !== undefined && (await readAppById(trx, existing)) !== undefined) throw new PurgeUnderWay(existing, branch);
  const id = newUuid<AppId>();
  for (const name of namesFor(previewName(parent.name, branch))) {
    const inserted = await insertApp(trx, {
      id,
      tenant_id: parent.tenant_id,
      name,
      git_url: null,
      branch,
      repository_id: parent.repository_id,
      parent_app_id: parent.id,
      preview_branch: branch,
      created_by: createdBy,
      created_at: now,
    });
    if (inserted) break;
  }
  await enqueueEnsureApp(context, trx, id);
  return requireRow(trx, id);
}

async function requireRow(db: Db, appId: AppId): Promise<AppRow> {
  const row = await readAppById(db, appId);
  if (row === undefined) throw new AppError('internal', 'The preview could not be created.');
  return row;
}

/** The wanted name, then with a number: two branches may be shortened to one name, and another app may have it. */
function* namesFor(wanted: string): Generator<string> {
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? '' : `-${count}`;
    yield wanted.slice(0, maxAppNameLength - suffix.length).replace(/-+$/, '') + suffix;
  }
}
