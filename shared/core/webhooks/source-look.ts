import { type AppRow, listPreviews, listPreviewsOf, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { checkBranchName } from '#shared/core/apps/branch-name.ts';
import { afterPurges, choosePreviewBranches, ensurePreview, tooManyPreviewsMessage } from '#shared/core/apps/previews.ts';
import { createBuild, type FoundCaches, withCaches } from '#shared/core/builds/build-creation.ts';
import { isBuildOver, readLatestBuild } from '#shared/core/builds/builds-store.ts';
import { isRepository } from '#shared/core/builds/repository-source.ts';
import type { Context } from '#shared/core/context.ts';
import { removePreviews } from '#shared/core/deletion/preview-removal.ts';
import { readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import { readSourceTips } from '#shared/core/repositories/source-fetch.ts';
import {
  deleteHints,
  deleteLook,
  type HintRow,
  type LookRow,
  listHints,
  readLook,
  writeLook,
} from '#shared/core/webhooks/source-looks-store.ts';
import { planSourceMoves, type SourceMoves } from '#shared/core/webhooks/source-moves.ts';
import type { DeliveryResult } from '#shared/core/webhooks/webhooks.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError } from '#shared/errors.ts';
import type { AppId, ObjectId } from '#shared/ids.ts';

/** What became of the branches that were named or have changed, by branch. */
export interface Look {
  results: ReadonlyMap<string, DeliveryResult>;
  /** The git host does not show yet what a delivery named: ask again soon. */
  isBehind: boolean;
}

/** Attempts to ask before anyone who asked later has written the answer down. */
const mostAttempts = 3;

/**
 * Asks the git host for the branches of the app's source, builds what is new, makes previews and removes those whose branch
 * is gone. May be called at any time and by several at once.
 * @returns undefined for an app that follows no repository
 * @throws AppError `validation_failed` when the git host cannot be asked
 */
export async function lookAtSource(context: Context, appId: AppId, signal: AbortSignal): Promise<Look | undefined> {
  const { db, clock } = context;
  for (let attempt = 0; attempt < mostAttempts; attempt += 1) {
    const app = await readAppById(db, appId);
    if (app === undefined || app.deleted_at !== null || app.git_url === null) {
      await deleteLook(db, appId);
      return undefined;
    }
    const hints = await listHints(db, appId);
    const before = await readLook(db, appId);
    const askedAt = clock.now();
    const { branches: tips } = await readSourceTips(context, app, app.git_url, signal);
    const seen = before?.url === app.git_url ? new Map(Object.entries(before.tips)) : undefined;
    const moves = planSourceMoves({ tips, seen, hints: hints.map(toHint) });
    const look: Applied = { context, app, url: app.git_url, hints, before, moves, results: new Map(), gone: [] };
    const branches = moves.build.map(({ branch }) => branch);
    const isApplied = await afterPurges(context, async () =>
      withCaches(context, await listBuiltApps(db, app, branches), (caches) =>
        db.transaction().execute((trx) => applyMoves(trx, look, { askedAt, tips, caches })),
      ),
    );
    if (!isApplied) continue;
    for (const branch of look.gone) await deleteBranch(context, app, branch);
    return { results: look.results, isBehind: moves.isBehind };
  }
  return { results: new Map(), isBehind: true };
}

function toHint({ branch, commit, skips_build }: HintRow) {
  return { branch, commit, skipsBuild: skips_build };
}

/** The apps that exist already of those that builds of the branches go to: the app for its own branch, previews for the others. */
export async function listBuiltApps(db: Db, app: AppRow, branches: readonly string[]): Promise<AppId[]> {
  const others = branches.filter((branch) => branch !== app.branch);
  const previews = await listPreviewsOf(db, app.id, others);
  return branches.includes(app.branch) ? [app.id, ...previews] : previews;
}

interface Applied {
  context: Context;
  app: AppRow;
  url: string;
  hints: readonly HintRow[];
  before: LookRow | undefined;
  moves: SourceMoves;
  results: Map<string, DeliveryResult>;
  /** Branches whose copies here are deleted after the transaction. */
  gone: string[];
}

interface Answer {
  askedAt: Date;
  tips: ReadonlyMap<string, ObjectId>;
  caches: FoundCaches;
}

/** False when another look was applied since the question was asked, or the app follows another repository by now. */
async function applyMoves(trx: Db, look: Applied, { askedAt, tips, caches }: Answer): Promise<boolean> {
  const { context, hints, before, moves, results } = look;
  const app = await lockApp(trx, look.app.id);
  const current = await readLook(trx, look.app.id);
  if (app?.git_url !== look.url || app.deleted_at !== null) return false;
  if (current?.asked_at.getTime() !== before?.asked_at.getTime() || current?.url !== before?.url) return false;
  look.gone = [];
  results.clear();
  for (const [branch, reason] of moves.unchanged) results.set(branch, { outcome: 'ignored', message: reason });
  await removeGone(trx, look, app);
  for (const move of moves.build) {
    const result = await buildBranch(trx, { context, app, url: look.url, caches }, move);
    if (result !== undefined) results.set(move.branch, result);
  }
  await deleteHints(
    trx,
    hints.map(({ id }) => id),
  );
  await writeLook(trx, { app_id: app.id, url: look.url, asked_at: askedAt, tips });
  return true;
}

async function removeGone(trx: Db, { context, moves, results, gone }: Applied, app: AppRow): Promise<void> {
  const previews = await listPreviews(trx, app.id);
  const active = new Set(previews.filter(({ deleted_at }) => deleted_at === null).map(({ preview_branch }) => preview_branch));
  for (const branch of moves.gone) {
    if (branch === app.branch) {
      const message = `${branch} was deleted. The app is deployed from it: its last release stays live.`;
      results.set(branch, { outcome: 'ignored', message });
      continue;
    }
    gone.push(branch);
    results.set(
      branch,
      active.has(branch)
        ? { outcome: 'removed', message: `The preview of ${branch} is removed.` }
        : { outcome: 'ignored', message: `${branch} was deleted. It had no preview.` },
    );
  }
  await removePreviews(context, trx, app.id, gone);
}

/** Where a branch is built. */
export interface BuildPlace {
  context: Context;
  app: AppRow;
  /** The address of the repository. */
  url: string;
  caches: FoundCaches;
}

/**
 * Starts a build of a branch in the app or in its preview, in a transaction that holds the app's lock.
 * @param move `commit` null: what the branch has once the build runs
 * @returns undefined when there is nothing to do and nobody has asked
 */
export async function buildBranch(
  trx: Db,
  { context, app, url, caches }: BuildPlace,
  { branch, commit, hinted }: { branch: string; commit: ObjectId | null; hinted: boolean },
): Promise<DeliveryResult | undefined> {
  const isProduction = branch === app.branch;
  if (!isProduction && !isUsableBranch(branch)) return { outcome: 'ignored', message: `${branch} cannot have a preview.` };
  if (!isProduction && !(await choosePreviewBranches(trx, app.id, [branch])).has(branch))
    return { outcome: 'ignored', message: tooManyPreviewsMessage(branch) };
  const target = isProduction ? app : await ensurePreview(context, trx, app, branch, app.created_by);
  const ref = `refs/heads/${branch}`;
  const reason = await whyNotBuilt(trx, target.id, { ref, commit, hinted });
  if (reason !== undefined) return hinted ? { outcome: 'ignored', message: `${branch} ${reason}` } : undefined;
  try {
    await createBuild(context, trx, target, {
      commit,
      branch,
      refChanges: null,
      source: { url, ref, commit },
      createdBy: app.created_by,
      caches,
    });
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return { outcome: 'ignored', message: error.message };
    throw error;
  }
  const what = isProduction ? 'A build' : 'A build of a preview';
  const at = commit === null ? '' : ` at ${commit.slice(0, 8)}`;
  return { outcome: 'started', message: `${what} of ${branch}${at} was started.` };
}

function isUsableBranch(branch: string): boolean {
  try {
    checkBranchName(branch);
    return true;
  } catch (error) {
    if (error instanceof AppError) return false;
    throw error;
  }
}

/** Why no build is due: the newest one is of this commit. One that failed is repeated when a delivery asks for it. */
async function whyNotBuilt(
  trx: Db,
  appId: AppId,
  { ref, commit, hinted }: { ref: string; commit: ObjectId | null; hinted: boolean },
): Promise<string | undefined> {
  const latest = await readLatestBuild(trx, appId);
  if (latest === undefined) return undefined;
  if (!isBuildOver(latest)) {
    const { source } = latest;
    const fetchesTip = latest.commit === null && isRepository(source) && source.ref === ref;
    if (fetchesTip || (commit !== null && latest.commit === commit)) return 'is being built already.';
    return undefined;
  }
  if (commit === null || latest.commit !== commit) return undefined;
  const at = commit.slice(0, 8);
  if (!hinted) return `at ${at} was built before.`;
  if (latest.status !== 'succeeded') return undefined;
  const deploy = latest.release_id === null ? undefined : await readDeployOfRelease(trx, latest.release_id);
  return deploy?.status === 'failed' || deploy?.status === 'aborted' ? undefined : `at ${at} was built before.`;
}

/** Our copy of a branch that is gone. One that is left over by a crash is in nobody's way. */
async function deleteBranch({ db, git }: Context, app: AppRow, branch: string): Promise<void> {
  const name = `refs/heads/${branch}`;
  const oldOid = await git.refs.readRef(app.repository_id, name);
  if (oldOid !== undefined) await git.refs.compareAndSwap(db, app.repository_id, [{ name, oldOid, newOid: undefined }]);
}
