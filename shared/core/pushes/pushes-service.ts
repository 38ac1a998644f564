import { narrowRole, requireRole } from '#shared/core/accounts/authorization.ts';
import { readPrincipal } from '#shared/core/accounts/callers.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { type AppRow, findApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { supersededMessage } from '#shared/core/builds/build-creation.ts';
import { followBuildLog } from '#shared/core/builds/build-log.ts';
import { type BuildRow, hasRunningBuild, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { takeFirstBranch } from '#shared/core/pushes/first-branch.ts';
import { acceptPush, type Push, reject, type StartedBuild } from '#shared/core/pushes/push-acceptance.ts';
import { planPush } from '#shared/core/pushes/push-plan.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import { deletionCause } from '#shared/core/releases/deploy-run.ts';
import { readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import type { DeployFailure } from '#shared/core/releases/releases.ts';
import { movedMessage } from '#shared/core/repositories/ref-moves.ts';
import { notFound } from '#shared/errors.ts';
import type { ApplyPush, RefResult } from '#shared/git/git-storage.ts';

/** Pushes and fetches of the repositories of apps. */
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

function createApplyPush(context: Context, principal: Principal, opened: AppRow): ApplyPush {
  return async (request, print, clientGone) => {
    const app = await takeFirstBranch(context, opened, request.commands);
    if (app.branch !== opened.branch)
      print(`-----> ${app.branch} is the branch of ${app.name} from now on: it is the first that was pushed`);
    const { commands, hints } = planPush(request.commands, app.branch);
    for (const hint of hints) print(hint);
    const push: Push = { context, principal, app, request, commands, detach: request.pushOptions.includes('detach') };
    const accepted = await acceptPush(push);
    for (const hint of accepted.hints) print(hint);
    const built: RefResult[] = [];
    for (const started of accepted.started) built.push(...(await watch(push, started, print, clientGone)));
    return [...accepted.results, ...built];
  };
}

async function watch(
  { context, app: parent, detach }: Push,
  { commands, build, app }: StartedBuild,
  print: (line: string) => void,
  clientGone: AbortSignal,
): Promise<RefResult[]> {
  const accept = (): RefResult[] => commands.map(({ name }) => ({ name, status: 'ok' }));
  const refuse = (reason: string): RefResult[] => commands.map((command) => reject(command, reason));
  if (app.id !== parent.id) print(`-----> ${build.branch} is not deployed: building the preview ${app.name}`);
  if (detach) {
    print(`       Building in the background. ${build.branch} has moved already. Watch it: paas builds:logs -a ${app.name}`);
    return accept();
  }
  if (await hasRunningBuild(context.db, app.id, build.id))
    print(`-----> Another build of ${app.name} is running; this one waits its turn`);
  for await (const { line } of followBuildLog(context, build.id, 0, clientGone)) print(line);
  const reason = await findRefusal(context, await readBuildById(context.db, build.id));
  return reason === undefined ? accept() : refuse(reason);
}

const deployRefusals: Readonly<Record<DeployFailure, string>> = {
  release_command: 'release command failed',
  boot: 'deploy failed',
  canary: 'canary aborted',
  moved: 'fetch first',
  platform: 'deploy failed',
};

/** Why the refs of a build did not move that is over, as git prints it. Undefined when its release is live. */
async function findRefusal({ db }: Context, build: BuildRow | undefined): Promise<string | undefined> {
  if (build === undefined) return 'the app was deleted';
  if (build.error === movedMessage) return 'fetch first';
  if (build.error === supersededMessage) return 'superseded by a newer push';
  if (build.status !== 'succeeded') return build.status === 'canceled' ? 'build canceled' : 'build failed';
  const deploy = build.release_id === null ? undefined : await readDeployOfRelease(db, build.release_id);
  if (deploy === undefined) return 'the app was deleted';
  if (deploy.failure !== null) return deployRefusals[deploy.failure];
  if (deploy.status === 'live') return undefined;
  return deploy.error === deletionCause ? 'the app was deleted' : 'superseded by a newer release';
}
