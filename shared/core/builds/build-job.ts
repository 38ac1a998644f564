import { type AppRow, readAppById } from '#shared/core/apps/apps-store.ts';
import { type BuildAttempt, type BuildResult, finishBuild } from '#shared/core/builds/build-attempt.ts';
import { endAndReportBuild } from '#shared/core/builds/build-report.ts';
import { recordSuccess } from '#shared/core/builds/build-result.ts';
import { deleteBuildTokens } from '#shared/core/builds/build-tokens-store.ts';
import { type BuildRow, claimBuild, fenceBuildLog, isBuildOver, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readEnvironment } from '#shared/core/releases/variables.ts';
import { canMoveRefs, movedMessage } from '#shared/core/repositories/ref-moves.ts';
import { buildLogKey, createBuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import { createLineRedactor } from '#shared/core/telemetry/redaction.ts';
import { watchForEnd } from '#shared/core/watch.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import { AppError } from '#shared/errors.ts';
import type { BuildId } from '#shared/ids.ts';

const cancelPollMilliseconds = 500;

/** What a build's row says that somebody canceled: users see it. */
export const canceledMessage = 'Canceled.';
const fault = 'The platform failed, not your app.';

/**
 * Brings one build to its end and records it. Again after a crash or in another process: the attempt before is fenced
 * off, and the watch of the build goes on; a build that the platform has lost starts over.
 */
export async function runBuildJob(context: Context, buildId: BuildId, stopping: AbortSignal): Promise<void> {
  const { db, clock } = context;
  const build = await claimBuild(db, buildId, clock.now());
  const app = build && (await readAppById(db, build.app_id));
  if (build !== undefined && app !== undefined) await runAttempt(context, app, build, stopping);
  await forgetBuild(context, buildId);
}

async function runAttempt(context: Context, app: AppRow, build: BuildRow, stopping: AbortSignal): Promise<void> {
  const { db } = context;
  let redact = (text: string): string => text;
  const log = createBuildLogWriter(context, {
    buildId: build.id,
    redact: (text) => redact(text),
    fence: (line) => fenceBuildLog(build, line),
  });
  const cancel = watchForEnd(
    context,
    { key: cancelKey(build.id), milliseconds: cancelPollMilliseconds, findReason: () => findCancel(context, build.id) },
    stopping,
  );
  const end = async (status: 'failed' | 'canceled', error: string): Promise<void> => {
    log.line(` !     ${error}`);
    // All lines are stored before anybody sees that it is over.
    await log.flush();
    await endAndReportBuild(context, db, build, { status, error: redact(error) });
  };
  try {
    const variables = await readEnvironment(context, db, app.tenant_id, app.id);
    const redactor = createLineRedactor(variables);
    redact = (text) => redactor.redact('', text);
    const attempt: BuildAttempt = { context, app, build, variables, log, stopping, canceled: cancel.signal };
    await recordResult(attempt, await finishBuild(attempt), end);
  } catch (error) {
    // Whether its end was recorded nobody can tell: the next attempt can.
    if (stopping.aborted || isDatabaseOutage(error)) throw error;
    if (cancel.signal.aborted) return await end('canceled', canceledMessage);
    context.log.error('A build broke on our side.', { buildId: build.id, error });
    await end('failed', describeFault(error));
  } finally {
    cancel.stop();
    context.wakeups.wake(buildLogKey(build.id));
  }
}

async function recordResult(
  { context, app, build, log }: BuildAttempt,
  result: BuildResult,
  end: (status: 'failed' | 'canceled', error: string) => Promise<void>,
): Promise<void> {
  if (result === 'fenced off') return undefined;
  const { outcome, commit } = result;
  if (outcome.status === 'failed') return end('failed', outcome.cause);
  if (outcome.status === 'canceled') return end('canceled', canceledMessage);
  // Asked again before the refs move: until then another push may be faster.
  if (!(await canMoveRefs(context, app.repository_id, build.ref_changes))) return end('failed', movedMessage);
  await log.flush();
  return recordSuccess(context, { ...build, commit }, outcome);
}

/** What the platform keeps of a build is needed until its end is recorded, by whichever attempt. */
async function forgetBuild({ db, platform }: Context, buildId: BuildId): Promise<void> {
  const build = await readBuildById(db, buildId);
  if (build !== undefined && !isBuildOver(build)) return;
  await platform.builds.deleteBuild(buildId);
  await deleteBuildTokens(db, buildId);
}

/** What the person who pushed is told: an AppError says what is wrong and what to do, anything else is for the operator's log. */
function describeFault(error: unknown): string {
  return error instanceof AppError
    ? `${fault} ${error.message}`
    : `${fault} Push again. If that does not help, give the operator the build id.`;
}

class Canceled extends Error {}

async function findCancel({ db }: Context, buildId: BuildId): Promise<Canceled | undefined> {
  const build = await readBuildById(db, buildId);
  // Of an app that is purged nobody wants the build either.
  return build?.cancel_requested === false ? undefined : new Canceled(canceledMessage);
}

/** Key of the wakeup that says that a build is to be canceled. */
export function cancelKey(buildId: BuildId): string {
  return `cancel:${buildId}`;
}
