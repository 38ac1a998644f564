import { readEnvironment } from '#shared/core/addons/addon-secrets.ts';
import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { lockApp, readAppById } from '#shared/core/apps/apps-store.ts';
import { describeSource, takeSource } from '#shared/core/builds/build-source.ts';
import { type BuildRow, claimBuild, endBuild, lockBuild, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { createRelease } from '#shared/core/releases/release-creation.ts';
import { canMoveRefs, moveRefs } from '#shared/core/repositories/ref-moves.ts';
import { type BuildLogWriter, buildLogKey, createBuildLogWriter } from '#shared/core/telemetry/build-log.ts';
import { createRedactor } from '#shared/core/telemetry/redaction.ts';
import { watchForEnd } from '#shared/core/watch.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import type { BuildId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';

const cancelPollMilliseconds = 500;

export const movedMessage = 'The branch moved while this push waited. Run `git pull` (fetch first), then push again.';

/** Thrown inside a build that somebody wants ended. */
class Canceled extends Error {}

/**
 * Runs one build to its end. Again after a crash: the attempt before is fenced off and the build starts over.
 * Its success, the refs it moves, the release and the deploy's job commit together.
 */
export async function runBuildJob(context: Context, buildId: BuildId, stopping: AbortSignal): Promise<void> {
  const { db, clock } = context;
  const build = await claimBuild(db, buildId, clock.now());
  if (build === undefined) return;
  const app = await readAppById(db, build.app_id);
  if (app === undefined) return;
  let redact = (text: string): string => text;
  const log = createBuildLogWriter(context, buildId, (text) => redact(text));
  const cancel = watchForEnd(
    context,
    { key: cancelKey(buildId), milliseconds: cancelPollMilliseconds, findReason: () => findCancel(context, buildId) },
    stopping,
  );
  try {
    const signal = AbortSignal.any([stopping, cancel.signal]);
    const variables = await readEnvironment(context, db, app.tenant_id, app.id);
    redact = createRedactor(variables);
    const end = await buildAndRelease(context, app, build, variables, log, signal);
    await log.flush();
    await end();
  } catch (error) {
    // Whether its end was recorded nobody can tell: the next attempt can.
    if (stopping.aborted || isDatabaseOutage(error)) throw error;
    const canceled = cancel.signal.aborted;
    if (!canceled) context.log.error('A build broke on our side.', { buildId, error });
    const cause = canceled
      ? 'Canceled.'
      : 'The platform failed, not your app. Push again; if it stays, tell the operator the build id.';
    log.line(` !     ${cause}`);
    await log.flush();
    await endBuild(db, build, { status: canceled ? 'canceled' : 'failed', error: cause }, clock.now());
  } finally {
    cancel.stop();
    context.wakeups.wake(buildLogKey(buildId));
  }
}

/** Answers how the build is to be recorded, so that all its lines are stored before anybody sees that it is over. */
async function buildAndRelease(
  context: Context,
  app: AppRow,
  build: BuildRow,
  variables: Readonly<Record<string, string>>,
  log: BuildLogWriter,
  signal: AbortSignal,
): Promise<() => Promise<void>> {
  const { db, clock, platform } = context;
  const tell = (line: string): void => log.line(line);
  const fail = (cause: string) => {
    tell(` !     ${cause}`);
    return async (): Promise<void> => {
      await endBuild(db, build, { status: 'failed', error: cause }, clock.now());
    };
  };
  const source = await takeSource(context, app, build, tell, signal);
  if ('fault' in source) return fail(source.fault);
  try {
    const { commit } = source;
    if (!(await canMoveRefs(context, app.repository_id, build.ref_changes))) return fail(movedMessage);
    if (build.attempt > 1) tell('-----> Starting over: the platform was restarted during this build');
    const outcome = await platform.builds.runBuild(
      {
        buildId: build.id,
        appId: app.id,
        appName: app.name,
        tenantId: app.tenant_id,
        openSource: source.open,
        env: variables,
        cacheState: build.cache_state,
        ...(commit === null ? {} : { commit }),
        timeoutSeconds: limits.build.seconds,
      },
      tell,
      signal,
    );
    if (outcome.status === 'succeeded') return () => recordSuccess(context, { ...build, commit }, outcome, log);
    return fail(outcome.cause);
  } finally {
    await source.discard();
  }
}

async function recordSuccess(
  context: Context,
  build: BuildRow,
  outcome: BuildOutcome & { status: 'succeeded' },
  log: BuildLogWriter,
): Promise<void> {
  const { db, clock } = context;
  const moved = await db.transaction().execute(async (trx) => {
    const app = await lockApp(trx, build.app_id);
    // Locked: an attempt that began between here and the end would find it running, and make a second release.
    const current = await lockBuild(trx, build.id);
    // Another attempt has taken over, or the build was ended meanwhile.
    if (app === undefined || current?.attempt !== build.attempt || current.status !== 'running') return true;
    // Nobody wants it any more, and it was too late to stop the building.
    if (current.cancel_requested || app.deleted_at !== null) {
      return endBuild(trx, build, { status: 'canceled', error: 'Canceled.' }, clock.now());
    }
    if (!(await moveRefs(context, trx, app.repository_id, build.ref_changes))) return false;
    const { releaseId } = await createRelease(context, trx, app, {
      kind: 'build',
      image: {
        image_url: outcome.imageUrl,
        processes: outcome.processes as Record<string, string>,
        release_command: outcome.releaseCommand ?? null,
        commit: build.commit,
      },
      description: `Deploy ${describeSource(build)}`,
      createdBy: build.created_by,
      buildId: build.id,
    });
    const end = {
      status: 'succeeded' as const,
      image_url: outcome.imageUrl,
      processes: JSON.stringify(outcome.processes),
      release_command: outcome.releaseCommand ?? null,
      release_id: releaseId,
    };
    return endBuild(trx, build, end, clock.now());
  });
  if (moved) return;
  log.line(` !     ${movedMessage}`);
  await log.flush();
  await endBuild(db, build, { status: 'failed', error: movedMessage }, clock.now());
}

async function findCancel({ db }: Context, buildId: BuildId): Promise<Canceled | undefined> {
  const build = await readBuildById(db, buildId);
  return build?.cancel_requested === true ? new Canceled('Canceled.') : undefined;
}

export function cancelKey(buildId: BuildId): string {
  return `cancel:${buildId}`;
}
