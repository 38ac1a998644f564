import type { AppRow } from '#shared/core/apps/apps-store.ts';
import { takeSource } from '#shared/core/builds/build-source.ts';
import { createBuildAddress } from '#shared/core/builds/build-tokens.ts';
import { type BuildRow, restartBuildLog } from '#shared/core/builds/builds-store.ts';
import { lacksRoomForBuilds, noRoomMessage } from '#shared/core/builds/disk-rules.ts';
import type { Context } from '#shared/core/context.ts';
import { canMoveRefs, movedMessage } from '#shared/core/repositories/ref-moves.ts';
import type { BuildLogWriter } from '#shared/core/telemetry/build-log-writer.ts';
import { isDatabaseOutage } from '#shared/database/outages.ts';
import type { BuildId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';
import type { BuildOutcome } from '#shared/platform/builds.ts';

const cacheMessage = 'The old build cache is still being deleted. Push again later. If that does not help, contact the operator.';

const cachePollMilliseconds = 500;
const cancelRetryMilliseconds = 500;
/** Between two looks at a build whose pipeline reports nothing. */
const checkMilliseconds = 60_000;
/** Of one attempt: a platform that loses a build again and again is broken. */
const mostStarts = 3;

/** What one attempt at a build works with. */
export interface BuildAttempt {
  context: Context;
  app: AppRow;
  build: BuildRow;
  /** The app's variables. */
  variables: Readonly<Record<string, string>>;
  log: BuildLogWriter;
  /** Aborts when the worker stops: the watch ends, and the build goes on where the platform can. */
  stopping: AbortSignal;
  /** Aborts when the build is to be canceled. */
  canceled: AbortSignal;
}

export type BuildResult =
  /** `commit` is what was built; null for an archive. */
  | { outcome: Exclude<BuildOutcome, { status: 'lost' }>; commit: string | null }
  /** A later attempt has begun, or the build is over: nothing is left to do for this one. */
  | 'fenced off';

/**
 * Brings a build to its end: resumes the watch of one that an attempt before has started, and starts it when the platform
 * does not know it, or not any more.
 * @throws the reason of `stopping`; that of `canceled`, when the build was not started yet
 */
export async function finishBuild(attempt: BuildAttempt): Promise<BuildResult> {
  const { build } = attempt;
  if (build.attempt > 1) {
    const outcome = await watchBuild(attempt, build.platform_line);
    if (outcome.status !== 'lost') return { outcome, commit: build.commit };
  }
  for (let starts = 0; starts < mostStarts; starts += 1) {
    const started = await startBuild(attempt, starts > 0);
    if ('result' in started) return started.result;
    const outcome = await watchBuild(attempt, 0);
    if (outcome.status !== 'lost') return { outcome, commit: started.commit };
  }
  throw new Error(`The platform lost the build ${mostStarts} times.`);
}

type Started = { commit: string | null } | { result: BuildResult };

async function startBuild(attempt: BuildAttempt, again: boolean): Promise<Started> {
  const { context, app, build, variables, log, stopping, canceled } = attempt;
  const signal = AbortSignal.any([stopping, canceled]);
  const line = (text: string): void => log.line(text);
  const fail = (cause: string): Started => ({ result: { outcome: { status: 'failed', cause }, commit: build.commit } });
  signal.throwIfAborted();
  // It may have waited in the queue, or come from a git host that was not told.
  if (await lacksRoomForBuilds(context)) return fail(noRoomMessage);
  if (!(await waitForCache(attempt, signal))) return fail(cacheMessage);
  const source = await takeSource({ context, app, build, line, signal });
  if ('fault' in source) return fail(source.fault);
  let isOurs = true;
  try {
    if (!(await canMoveRefs(context, app.repository_id, build.ref_changes))) return fail(movedMessage);
    if (again || build.attempt > 1) line('-----> Starting over: the platform was restarted during this build');
    signal.throwIfAborted();
    // Lines of a start before have numbers that mean nothing any more.
    await log.flush();
    if (!(await restartBuildLog(context.db, build))) return { result: 'fenced off' };
    isOurs = false;
    const { commit } = source;
    await context.platform.builds.startBuild({
      buildId: build.id,
      appId: app.id,
      appName: app.name,
      tenantId: app.tenant_id,
      source: { ...source, createAddress: () => createBuildAddress(context, build.id, 'source') },
      createCallback: () => createBuildAddress(context, build.id, 'callback'),
      env: variables,
      cacheState: build.cache_state,
      ...(commit === null ? {} : { commit }),
      timeoutSeconds: limits.build.seconds,
    });
    return { commit };
  } finally {
    if (isOurs) await source.close();
  }
}

/** Ensures the cache once a deletion has ended that is under way. False when that takes longer than a build may. */
async function waitForCache({ context, app, log }: BuildAttempt, signal: AbortSignal): Promise<boolean> {
  const { platform, clock } = context;
  const deadline = clock.now().getTime() + limits.build.seconds * 1000;
  for (let waits = 0; (await platform.caches.ensureCache(app.id)).state === 'deleting'; waits += 1) {
    if (waits === 0) log.line('-----> Waiting until the old build cache is deleted');
    if (clock.now().getTime() > deadline) return false;
    await clock.sleep(cachePollMilliseconds, signal);
  }
  return true;
}

/** Writes the build's lines to its log, and cancels it when that is asked for. */
async function watchBuild(attempt: BuildAttempt, afterLine: number): Promise<BuildOutcome> {
  const { context, build, log, stopping, canceled } = attempt;
  const ended = new AbortController();
  const cancel = (): void => void cancelUntil(attempt, ended.signal);
  canceled.addEventListener('abort', cancel, { once: true });
  if (canceled.aborted) cancel();
  void checkWhenHinted(attempt, ended.signal);
  try {
    for await (const event of context.platform.builds.watchBuild(build.id, afterLine, stopping)) {
      if (event.type === 'ended') return event.outcome;
      log.line(event.line, event.number);
    }
    throw new Error('The watch of a build ended before the build did.');
  } catch (error) {
    if (stopping.aborted || !isDatabaseOutage(error)) throw error;
    // The platform reads the source from the database, and remembers the build as one that failed for want of it.
    await context.platform.builds.deleteBuild(build.id);
    return { status: 'lost' };
  } finally {
    ended.abort();
    canceled.removeEventListener('abort', cancel);
  }
}

/** Has the platform look at the build each time that its pipeline reports its end, in whichever process, and now and then. */
async function checkWhenHinted({ context, build }: BuildAttempt, ended: AbortSignal): Promise<void> {
  const { platform, wakeups, log } = context;
  for (;;) {
    await wakeups.wait(completionKey(build.id), checkMilliseconds, ended);
    if (ended.aborted) return;
    await platform.builds
      .checkBuild(build.id)
      .catch((error: unknown) => log.warn('The platform could not look at a build.', { buildId: build.id, error }));
  }
}

/** Asks the platform to cancel the build until it has taken that up, or the watch is over. */
async function cancelUntil({ context, build }: BuildAttempt, ended: AbortSignal): Promise<void> {
  const { platform, clock, log } = context;
  while (!ended.aborted) {
    try {
      await platform.builds.cancelBuild(build.id);
      return;
    } catch (error) {
      log.warn('A build could not be canceled; trying again.', { buildId: build.id, error });
      await clock.sleep(cancelRetryMilliseconds);
    }
  }
}

/** Key of the wakeup that says that the pipeline of a build has reported its end. */
export function completionKey(buildId: BuildId): string {
  return `completion:${buildId}`;
}
