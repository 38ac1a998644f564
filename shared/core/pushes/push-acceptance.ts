import type { Principal } from '#shared/core/accounts/principals.ts';
import { type AppRow, listPreviewsOf, lockApp } from '#shared/core/apps/apps-store.ts';
import { afterPurges, choosePreviewBranches, ensurePreview, tooManyPreviewsMessage } from '#shared/core/apps/previews.ts';
import { createBuild, type FoundCaches, withCaches } from '#shared/core/builds/build-creation.ts';
import type { BuildRow } from '#shared/core/builds/builds-store.ts';
import { requireRoomForBuilds } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import { removePreviews } from '#shared/core/deletion/preview-removal.ts';
import type { PlannedCommand } from '#shared/core/pushes/push-plan.ts';
import type { RefMove } from '#shared/core/repositories/ref-moves.ts';
import { enqueueMaintenance } from '#shared/core/repositories/repository-maintenance.ts';
import type { Db } from '#shared/database/db.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { PushRequest, RefChange, RefResult } from '#shared/git/git-storage.ts';
import type { AppId } from '#shared/ids.ts';

/** One push of several refs to an app. */
export interface Push {
  context: Context;
  principal: Principal;
  app: AppRow;
  request: PushRequest;
  /** Its refs in the client's order, with what each means. */
  commands: readonly PlannedCommand[];
  /** Nobody waits for builds: their refs move at once. */
  detach: boolean;
}

/** A build that commands wait for: one, or all of an atomic push. */
export interface StartedBuild {
  commands: readonly RefChange[];
  build: BuildRow;
  app: AppRow;
}

export interface AcceptedPush {
  results: RefResult[];
  started: StartedBuild[];
  /** Lines for the person who pushes. */
  hints: readonly string[];
}

/** An atomic push that cannot be accepted as a whole, with the reason: its transaction is rolled back. */
class AtomicRefusal extends Error {}

/**
 * The one transaction of a push: its pack, the refs that move at once, the builds of the others and their jobs. After
 * it a crash loses nothing; before it nothing has happened.
 */
export async function acceptPush(push: Push): Promise<AcceptedPush> {
  const { context, app, request, commands } = push;
  const refuseAll = (reason: string): AcceptedPush => ({
    started: [],
    hints: [],
    results: commands.map(({ command }) => reject(command, reason)),
  });
  const refused = commands.filter((planned) => planned.action === 'refuse');
  if (refused.length > 0 && (request.atomic || refused.length === commands.length)) {
    const results = commands.map(({ command, reason }) => reject(command, reason ?? 'atomic push failed'));
    return { started: [], hints: [], results };
  }
  try {
    const start = async (): Promise<AcceptedPush> =>
      withCaches(context, await listBuiltApps(push), (caches) =>
        context.db.transaction().execute(async (trx) => {
          const locked = await lockApp(trx, app.id);
          if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
          const { commands: planned, hints } = await limitPreviews(trx, locked, commands);
          const limited = { ...push, app: locked, commands: planned };
          const together = movesTogether(limited);
          await request.pack?.admit(trx);
          const accepted = await acceptCommands(limited, trx, { together, caches });
          await enqueueMaintenance(context, trx, locked.repository_id);
          return { ...accepted, hints };
        }),
      );
    if (commands.some(({ action }) => action === 'build')) await requireRoomForBuilds(context);
    return await afterPurges(context, start);
  } catch (error) {
    if (error instanceof AtomicRefusal) return refuseAll(error.message);
    if (error instanceof AppError && error.code !== 'internal') return refuseAll(error.message);
    throw error;
  }
}

/** The apps that the push builds and that exist already: its app, and previews of its other branches. */
async function listBuiltApps({ context, app, commands }: Push): Promise<AppId[]> {
  const branches = commands.flatMap(({ action, branch }) => (action === 'build' ? branch : []));
  const others = branches.filter((branch) => branch !== app.branch);
  const previews = await listPreviewsOf(context.db, app.id, others);
  return others.length < branches.length ? [app.id, ...previews] : previews;
}

/** Branches for whose previews there is no room are stored and not built. The app must be locked. */
async function limitPreviews(
  trx: Db,
  app: AppRow,
  commands: readonly PlannedCommand[],
): Promise<{ commands: readonly PlannedCommand[]; hints: readonly string[] }> {
  const isPreview = ({ action, branch }: PlannedCommand): boolean => action === 'build' && branch !== app.branch;
  const branches = commands.filter(isPreview).map(({ branch }) => branch);
  if (branches.length === 0) return { commands, hints: [] };
  const deleted = commands.filter(({ action }) => action === 'delete-branch').map(({ branch }) => branch);
  const chosen = await choosePreviewBranches(trx, app.id, branches, deleted);
  return {
    commands: commands.map((each) => (isPreview(each) && !chosen.has(each.branch) ? { ...each, action: 'store' } : each)),
    hints: branches.filter((branch) => !chosen.has(branch)).map((branch) => ` !     ${tooManyPreviewsMessage(branch)}`),
  };
}

/**
 * Whether nothing of the push moves before its one build succeeds: what else is in an atomic push moves with the build.
 * @throws AtomicRefusal when there would be several builds, or a branch is deleted
 */
function movesTogether({ request, commands, detach }: Push): boolean {
  const [build] = commands.filter(({ action }) => action === 'build');
  if (!request.atomic || detach || build === undefined || commands.length === 1) return false;
  if (commands.some((planned) => planned !== build && planned.action !== 'store'))
    throw new AtomicRefusal('an atomic push builds one branch and deletes none: push without --atomic, or with -o detach');
  return true;
}

interface Acceptance {
  /** Nothing moves but with the one build. */
  together: boolean;
  caches: FoundCaches;
}

/**
 * Moves what moves at once and starts the builds of the others, where each ref is still as the client saw it. The number
 * of statements for the refs of a push does not grow with the number of refs.
 *
 * @throws AtomicRefusal
 */
async function acceptCommands(push: Push, trx: Db, { together, caches }: Acceptance): Promise<Omit<AcceptedPush, 'hints'>> {
  const { context, principal, app, commands, detach } = push;
  const waits = ({ action }: PlannedCommand): boolean => together || (action === 'build' && !detach);
  const open = commands.filter(({ action }) => action !== 'refuse');
  // One that waits stays where it is. Asked in the transaction: a second connection may never be free.
  const moves = open.map((planned) =>
    waits(planned) ? { ...planned.command, newOid: planned.command.oldOid } : planned.command,
  );
  const { refs } = context.git;
  const { atomic } = push.request;
  if (atomic && !(await refs.compareAndSwap(trx, app.repository_id, moves)))
    throw new AtomicRefusal('atomic push failed: a ref has moved, fetch first');
  const moved = atomic ? new Set(moves.map(({ name }) => name)) : await refs.swapEach(trx, app.repository_id, moves);
  const taken = open.filter(({ command }) => moved.has(command.name));
  const deleted = taken.flatMap(({ action, branch }) => (action === 'delete-branch' ? branch : []));
  if (deleted.length > 0) await removePreviews(context, trx, app.id, deleted);

  const accepted: Omit<AcceptedPush, 'hints'> = { results: [], started: [] };
  for (const planned of commands) {
    const { command, action, branch, reason } = planned;
    if (action === 'refuse') accepted.results.push(reject(command, reason ?? 'refused'));
    else if (!moved.has(command.name)) accepted.results.push(reject(command, 'fetch first'));
    else if (action === 'build' && command.newOid !== undefined) {
      const waiting = together ? commands.map((each) => each.command) : [command];
      const target = branch === app.branch ? app : await ensurePreview(context, trx, app, branch, principal.userId);
      const build = await createBuild(context, trx, target, {
        commit: command.newOid,
        branch,
        refChanges: waits(planned) ? waiting.map(toMove) : null,
        createdBy: principal.userId,
        caches,
      });
      accepted.started.push({ commands: waiting, build, app: target });
    } else if (!together) accepted.results.push({ name: command.name, status: 'ok' });
  }
  return accepted;
}

function toMove({ name, oldOid, newOid }: RefChange): RefMove {
  return { name, from: oldOid ?? null, to: newOid ?? null };
}

/** The answer that a ref does not move. */
export function reject(command: RefChange, reason: string): RefResult {
  return { name: command.name, status: 'rejected', reason };
}
