import { ensureAppEnvironment } from '#shared/core/apps/app-environment.ts';
import { enqueueCollectImages, enqueueEnsureWorkload, enqueueReport } from '#shared/core/apps/app-jobs.ts';
import { lockApp, readAppById, setCurrentRelease } from '#shared/core/apps/apps-store.ts';
import { watchForDeletion } from '#shared/core/apps/watch-deletion.ts';
import type { Context } from '#shared/core/context.ts';
import { type DeployRun, deletionCause, hasMovedAway, movedAway, type Verdict } from '#shared/core/releases/deploy-run.ts';
import { claimDeploy, endDeploy, hasNewerDeploy, setDeployFailure } from '#shared/core/releases/deploys-store.ts';
import { refuseTooManyInstances } from '#shared/core/releases/instance-quota.ts';
import { runReleaseCommand } from '#shared/core/releases/release-command.ts';
import { type DeployStatus, type ReleaseKind, releaseKinds } from '#shared/core/releases/releases.ts';
import { type ReleaseRow, readReleaseById, setReleaseStatus } from '#shared/core/releases/releases-store.ts';
import { endUnrecordedRollout, rollOut } from '#shared/core/releases/rollout.ts';
import { workloadSpec } from '#shared/core/releases/workload-spec.ts';
import { movedMessage, moveRefs } from '#shared/core/repositories/ref-moves.ts';
import { type BuildLogWriter, buildLogKey, createBuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import { createLineRedactor } from '#shared/core/telemetry/redaction.ts';
import type { Db } from '#shared/database/db.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import type { DeployId } from '#shared/ids.ts';
import { workloadEnvironment } from '#shared/platform/workload-environment.ts';

const appWasDeleted: Verdict = { status: 'superseded', error: deletionCause, failure: null, lines: [] };

/**
 * Brings one release live, or leaves the previous one serving and logs why. After a crash the next attempt continues the
 * rollout at its present weight; the release command may then run a second time.
 */
export async function runDeployJob(context: Context, deployId: DeployId, stopping: AbortSignal): Promise<void> {
  const { db } = context;
  const deploy = await claimDeploy(db, deployId);
  const release = deploy && (await readReleaseById(db, deploy.release_id));
  const app = release && (await readAppById(db, release.app_id));
  if (deploy === undefined || release === undefined || app === undefined) return;
  let redact = (text: string): string => text;
  const log = createDeployLog(context, release, (text) => redact(text));
  const deletion = watchForDeletion(context, app.id, stopping);
  try {
    const spec = await workloadSpec(context, app, release);
    const redactor = createLineRedactor(workloadEnvironment(spec));
    redact = (text) => redactor.redact('', text);
    const verdict = await decide({ context, app, deploy, release, spec, log, stopping, deleted: deletion.signal });
    for (const line of verdict.lines) log.line(line);
    await log.flush();
    const error = verdict.error === null ? null : redact(verdict.error);
    await recordVerdict({ context, app, deploy, release }, { ...verdict, error });
  } catch (error) {
    // It is unknown whether the verdict was recorded: the next attempt finds out.
    if (stopping.aborted || isDatabaseOutage(error)) throw error;
    if (deletion.signal.aborted) return await recordVerdict({ context, app, deploy, release }, appWasDeleted);
    context.log.error('The platform failed during a deploy.', { deployId, error });
    const cause = `The platform failed to roll out v${release.version}. The previous release keeps serving. Try \`paas restart\` or push again.`;
    log.line(` !     ${cause}`);
    await log.flush();
    const verdict: Verdict = { status: 'failed', error: cause, failure: 'platform', lines: [] };
    // The rollout may have stopped at any step: the current release gets all traffic back.
    await recordVerdict({ context, app, deploy, release }, verdict, (trx) => enqueueEnsureWorkload(context, trx, app.id));
  } finally {
    deletion.stop();
  }
}

async function decide(run: DeployRun): Promise<Verdict> {
  const { context, app, deploy, release, log } = run;
  if (app.deleted_at !== null) return appWasDeleted;
  const superseded = await findSuperseding(run);
  if (superseded !== undefined) return superseded;
  // Also in a later attempt: the worker of the first one may have ended before it could look.
  if (deploy.steps.length === 0 && (await hasMovedAway(run))) {
    await endUnrecordedRollout(run, movedMessage);
    return movedAway;
  }
  const refused = deploy.attempt === 1 ? await refuseTooManyInstances(run) : undefined;
  if (refused !== undefined) return refused;
  if (deploy.attempt === 1) log.line(`-----> Releasing v${release.version}`);
  await ensureAppEnvironment(context, app);
  return (await runReleaseCommand(run)) ?? rollOut(run);
}

/** Ends the deploy. The refs of its push move in the transaction that makes the release current. */
async function recordVerdict(
  { context, app, deploy, release }: Pick<DeployRun, 'context' | 'app' | 'deploy' | 'release'>,
  verdict: Verdict,
  afterwards: (trx: Db) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const { db, clock, wakeups, log } = context;
  await db.transaction().execute(async (trx) => {
    const { status, error, failure } = verdict;
    // In the order of a push, which locks an app, its repository, then its previews.
    await lockApp(trx, app.parent_app_id ?? app.id);
    const end = { status, error, failure, weight: status === 'live' ? 100 : 0, finished_at: clock.now() };
    if (!(await endDeploy(trx, deploy, end))) return;
    if (status === 'live' && !(await moveRefs(context, trx, app.repository_id, deploy.ref_changes))) {
      // A push that did not wait has moved a ref since the promotion: its release comes next.
      log.warn('A release is live whose ref has moved elsewhere.', { deployId: deploy.id });
      await setDeployFailure(trx, deploy.id, 'moved', movedMessage);
    }
    await setReleaseStatus(trx, release.id, status === 'live' ? 'succeeded' : status === 'superseded' ? 'pending' : 'failed');
    if (status === 'live') await setCurrentRelease(trx, release.app_id, release.id);
    await enqueueCollectImages(context, trx, release.app_id);
    const followsSource = app.git_url !== null || app.parent_app_id !== null;
    if (release.kind === 'build' && release.build_id !== null && followsSource)
      await enqueueReport(context, trx, app.id, { buildId: release.build_id });
    await afterwards(trx);
  });
  if (release.build_id !== null) wakeups.wake(buildLogKey(release.build_id));
}

/**
 * A release that waits comes before an older one that has not begun. An older one that has begun goes on, unless a newer one was
 * begun while it was interrupted: the app would go back.
 */
async function findSuperseding({ context, deploy, release }: DeployRun): Promise<Verdict | undefined> {
  const isFirstAttempt = deploy.attempt === 1;
  // A build is not superseded by a change of config or add-ons: that has its image, and its push is told how it went.
  const kinds: readonly ReleaseKind[] = release.kind === 'build' ? ['build', 'rollback'] : releaseKinds;
  const statuses: readonly DeployStatus[] = isFirstAttempt ? ['pending', 'rolling', 'live'] : ['rolling', 'live'];
  if (!(await hasNewerDeploy(context.db, release, { kinds, statuses }))) return undefined;
  const error = isFirstAttempt ? 'A newer release was waiting.' : 'A newer release was deployed while this one was interrupted.';
  const line = isFirstAttempt ? 'a newer release is waiting' : 'a newer release was deployed';
  return { status: 'superseded', error, failure: null, lines: [`       Skipped: ${line}`] };
}

/** The release of a build writes to the build's log, which the pusher follows; others write to the app's log. */
function createDeployLog(context: Context, release: ReleaseRow, redact: (text: string) => string): BuildLogWriter {
  if (release.build_id !== null && release.kind === 'build')
    return createBuildLogWriter(context, { buildId: release.build_id, redact });
  let last: Promise<void> = Promise.resolve();
  return {
    line(text) {
      const message = redact(text.replace(/^(?:-----> | !  {5}| {7})/, ''));
      last = last.then(() => context.platform.logs.appendPlatformLog(release.app_id, message)).catch(() => undefined);
    },
    flush: () => last,
  };
}
