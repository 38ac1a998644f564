import { narrowRole, requireRole } from '#shared/core/accounts/authorization.ts';
import { readPrincipal } from '#shared/core/accounts/callers.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { type AppRow, findApp, lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { ensurePreview, removePreviews } from '#shared/core/apps/previews.ts';
import { movedMessage } from '#shared/core/builds/build-attempt.ts';
import { createBuild, supersededMessage } from '#shared/core/builds/build-creation.ts';
import { followBuildLog } from '#shared/core/builds/build-log.ts';
import { type BuildRow, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { type PlannedCommand, planPush } from '#shared/core/pushes/push-plan.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { enqueueMaintenance } from '#shared/core/repositories/repository-maintenance.ts';
import type { Db, RefMove } from '#shared/database/schema.ts';
import { AppError, notFound } from '#shared/errors.ts';
import type { ApplyPush, PushRequest, RefChange, RefResult } from '#shared/git/git-storage.ts';

export function createPushes(context: Context): Pushes {
  return {
    async openRepository(principal, appName, access) {
      const named = await findApp(context.db, appName);
      // A preview's repository is its parent's: a push to either means the same.
      const parentId = named?.parent_app_id ?? null;
      const app = parentId === null ? named : await readAppById(context.db, parentId);
      if (app === undefined || app.deleted_at !== null) throw notFound('app');
      // A key speaks for its owner in each of their teams: the app says in which.
      const found = await readPrincipal(context.db, principal.userId, app.tenant_id);
      if (found === undefined) throw notFound('app');
      const member = narrowToToken(found, principal);
      if (access === 'write') requireRole(member, 'developer');
      return {
        repositoryId: app.repository_id,
        appId: app.id,
        appName: app.name,
        headRef: `refs/heads/${app.branch}`,
        applyPush: createApplyPush(context, member, app),
      };
    },
  };
}

/** An API token speaks in its own team only, and for no more than its scope. */
function narrowToToken(member: Principal, { tokenScope, tenantId }: Principal): Principal {
  if (tokenScope === undefined) return member;
  if (member.tenantId !== tenantId) throw notFound('app');
  return { ...member, role: narrowRole(member.role, tokenScope), tokenScope };
}

/** A build that commands wait for: one, or all of an atomic push. */
interface Started {
  commands: readonly RefChange[];
  build: BuildRow;
  app: AppRow;
}

interface Accepted {
  results: RefResult[];
  started: Started[];
}

/** Nothing of an atomic push may stay when one ref of it cannot move. */
class AtomicRefusal extends Error {}

function createApplyPush(context: Context, principal: Principal, app: AppRow): ApplyPush {
  return async (request, tell, clientGone) => {
    const plan = planPush(request.commands, app.branch);
    for (const hint of plan.hints) tell(hint);
    const detach = request.pushOptions.includes('detach');
    const accepted = await accept(context, principal, app, request, plan.commands, detach);
    const built: RefResult[] = [];
    for (const started of accepted.started) built.push(...(await watch(context, app, started, detach, tell, clientGone)));
    return [...accepted.results, ...built];
  };
}

/**
 * The one transaction of a push: its pack, the refs that move at once, the builds of the others and their jobs. After
 * it a crash loses nothing; before it nothing has happened.
 */
async function accept(
  context: Context,
  principal: Principal,
  app: AppRow,
  request: PushRequest,
  commands: readonly PlannedCommand[],
  detach: boolean,
): Promise<Accepted> {
  const refused = commands.filter((planned) => planned.action === 'refuse');
  if (refused.length > 0 && (request.atomic || refused.length === commands.length)) {
    return { started: [], results: commands.map((planned) => reject(planned.command, planned.reason ?? 'atomic push failed')) };
  }
  // All or none of an atomic push: what else it holds moves with its build, so there can be but one.
  const builds = commands.filter((planned) => planned.action === 'build');
  const together = request.atomic && !detach && builds.length > 0 && commands.length > 1;
  if (together && commands.some((planned) => planned !== builds[0] && planned.action !== 'store')) {
    const reason = 'an atomic push builds one branch and deletes none: push without --atomic, or with -o detach';
    return { started: [], results: commands.map(({ command }) => reject(command, reason)) };
  }
  try {
    return await context.db.transaction().execute(async (trx) => {
      const locked = await lockApp(trx, app.id);
      if (locked === undefined || locked.deleted_at !== null) throw notFound('app');
      await request.pack?.admit(trx);
      const accepted = await acceptCommands(context, trx, principal, locked, commands, {
        atomic: request.atomic,
        detach,
        together,
      });
      await enqueueMaintenance(context, trx, locked.repository_id);
      return accepted;
    });
  } catch (error) {
    if (error instanceof AtomicRefusal) {
      return {
        started: [],
        results: commands.map(({ command }) => reject(command, 'atomic push failed: a ref has moved, fetch first')),
      };
    }
    if (error instanceof AppError && error.code !== 'internal') {
      return { started: [], results: commands.map(({ command }) => reject(command, error.message)) };
    }
    throw error;
  }
}

interface PushMode {
  atomic: boolean;
  /** Nobody waits for builds: their refs move at once. */
  detach: boolean;
  /** Nothing moves but with the one build. */
  together: boolean;
}

/**
 * Moves what moves at once and starts the builds of the others, where each ref is still as the client saw it. So many
 * statements for the refs of a push, however many they are.
 *
 * @throws AtomicRefusal
 */
async function acceptCommands(
  context: Context,
  trx: Db,
  principal: Principal,
  app: AppRow,
  commands: readonly PlannedCommand[],
  { atomic, detach, together }: PushMode,
): Promise<Accepted> {
  const waits = ({ action }: PlannedCommand): boolean => together || (action === 'build' && !detach);
  const open = commands.filter(({ action }) => action !== 'refuse');
  // One that waits stays where it is. Asked in the transaction: a second connection may never be free.
  const moves = open.map((planned) =>
    waits(planned) ? { ...planned.command, newOid: planned.command.oldOid } : planned.command,
  );
  const { refs } = context.git;
  if (atomic && !(await refs.compareAndSwap(trx, app.repository_id, moves))) throw new AtomicRefusal();
  const moved = atomic ? new Set(moves.map(({ name }) => name)) : await refs.swapEach(trx, app.repository_id, moves);
  const taken = open.filter(({ command }) => moved.has(command.name));
  const deleted = taken.flatMap(({ action, branch }) => (action === 'delete-branch' ? branch : []));
  if (deleted.length > 0) await removePreviews(context, trx, app.id, deleted);

  const accepted: Accepted = { results: [], started: [] };
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
      });
      accepted.started.push({ commands: waiting, build, app: target });
    } else if (!together) accepted.results.push({ name: command.name, status: 'ok' });
  }
  return accepted;
}

async function watch(
  context: Context,
  parent: AppRow,
  { commands, build, app }: Started,
  detach: boolean,
  tell: (line: string) => void,
  clientGone: AbortSignal,
): Promise<RefResult[]> {
  const accept = (): RefResult[] => commands.map(({ name }) => ({ name, status: 'ok' }));
  const refuse = (reason: string): RefResult[] => commands.map((command) => reject(command, reason));
  if (app.id !== parent.id) tell(`-----> ${build.branch} is not deployed: building the preview ${app.name}`);
  if (detach) {
    tell(`       Building in the background. Watch it: paas builds:logs -a ${app.name}`);
    return accept();
  }
  if (await isBehindAnother(context, build)) tell(`-----> Another build of ${app.name} is running; this one waits its turn`);
  for await (const { line } of followBuildLog(context, build.id, 0, clientGone)) tell(line);
  const ended = await readBuildById(context.db, build.id);
  if (ended?.status === 'succeeded') return accept();
  if (ended?.error === movedMessage) return refuse('fetch first');
  if (ended?.error === supersededMessage) return refuse('superseded by a newer push');
  return refuse(ended?.status === 'canceled' ? 'build canceled' : 'build failed');
}

function toMove({ name, oldOid, newOid }: RefChange): RefMove {
  return { name, from: oldOid ?? null, to: newOid ?? null };
}

async function isBehindAnother({ db }: Context, build: BuildRow): Promise<boolean> {
  const ahead = await db
    .selectFrom('builds')
    .select('id')
    .where('app_id', '=', build.app_id)
    .where('status', '=', 'running')
    .where('id', '!=', build.id)
    .limit(1)
    .executeTakeFirst();
  return ahead !== undefined;
}

function reject(command: RefChange, reason: string): RefResult {
  return { name: command.name, status: 'rejected', reason };
}
