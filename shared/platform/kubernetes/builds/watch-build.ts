import type { BuildId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import type { BuildEvent, BuildOutcome } from '#shared/platform/builds.ts';
import { signalChanges } from '../cluster/change-signal.ts';
import type { Cluster, ClusterObject } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { pause } from '../cluster/pause.ts';
import { isOutage } from '../cluster/refusals.ts';
import { type BuildEnd, readBuildEnd } from './build-end.ts';
import { createBuildLogReader } from './build-log-reader.ts';
import { annotations, selectBuild } from './build-names.ts';
import { type BuildObservation, hasEnded, listSteps, observeBuild, type StepState, succeededOf } from './observe-build.ts';

/** Between two looks without news: a watch of the API server that is broken delays nothing for longer. */
const lookMilliseconds = 5000;
/** Between attempts to reach an API server that does not answer. */
const outageMilliseconds = 2000;
/** Until a log is read again whose connection has ended. */
const followPause = 200;
/** A PipelineRun that is pending for longer was created by a process that ended before it could start it. */
const pendingMilliseconds = 120_000;

/** What a watch needs. */
export interface WatchOptions {
  cluster: Cluster;
  /** Aborts when somebody says that the build may have ended. */
  hinted(buildId: BuildId): AbortSignal;
  /** What core is told of an end. */
  conclude(build: BuildObservation, end: Exclude<BuildEnd, { status: 'lost' }>): Promise<BuildOutcome>;
  /** Removes all that is left of a build that was lost. */
  forget(buildId: BuildId): Promise<unknown>;
}

/**
 * See `Builds.watchBuild`. Everything is read from the cluster, so any process may watch; lines are those of the steps' logs,
 * read from their beginning, and have the same numbers for each watcher.
 */
export async function* watchBuildOf(
  { cluster, hinted, conclude, forget }: WatchOptions,
  buildId: BuildId,
  afterLine: number,
  signal: AbortSignal,
): AsyncGenerator<BuildEvent> {
  const leaving = new AbortController();
  const over = AbortSignal.any([signal, leaving.signal]);
  const selection = { namespace: buildNamespace, labels: selectBuild(buildId) };
  const changes = signalChanges(
    cluster,
    [kinds.pipelineRun, kinds.pod].map((kind) => ({ kind, ...selection })),
    over,
  );
  const untilNews = (): Promise<void> =>
    Promise.race([changes.next(lookMilliseconds), untilAborted(AbortSignal.any([over, hinted(buildId)]))]);
  const observe = (): Promise<BuildObservation | undefined> =>
    waitForCluster(() => observeBuild(cluster, buildId), over).catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    });

  /** Aborts when the step has ended: until then its log is followed, and not read again and again. */
  function untilStepEnds(pod: ClusterObject, { name }: StepState): AbortSignal {
    const ended = new AbortController();
    void (async () => {
      for (;;) {
        await untilNews();
        if (over.aborted) return;
        const build = await observe();
        const now = build?.pod;
        const isSame = now !== undefined && now.metadata.uid === pod.metadata.uid;
        const step = isSame ? listSteps(now).find((each) => each.name === name) : undefined;
        if (step?.running !== true || isOver(build)) return;
      }
    })()
      .catch(() => undefined)
      .finally(() => ended.abort());
    return ended.signal;
  }

  const reader = createBuildLogReader(cluster);
  let number = 0;
  try {
    for (;;) {
      const build = await observe();
      signal.throwIfAborted();
      if (build === undefined) return void (yield lostEvent);
      const { pod } = build;
      let isFollowing = false;
      if (pod !== undefined && !reader.isOther(pod)) {
        const follow = (step: StepState): AbortSignal => {
          isFollowing = true;
          return untilStepEnds(pod, step);
        };
        try {
          for await (const line of reader.read(pod, isOver(build) ? undefined : follow, over)) {
            number += 1;
            if (number > afterLine) yield { type: 'line', number, line };
          }
        } catch (error) {
          signal.throwIfAborted();
          // The end of a step that is followed, or of the connection: what is missing is read next time.
          if (!isFollowing && !isOutage(error)) throw error;
          await pause(isFollowing ? followPause : outageMilliseconds, over);
          continue;
        }
      }
      const end = findEnd(build, pod !== undefined && reader.isOther(pod));
      if (end?.status === 'lost') {
        await waitForCluster(() => forget(buildId), over);
        return void (yield lostEvent);
      }
      if (end !== undefined)
        return void (yield { type: 'ended', outcome: await conclude(build, end), seconds: secondsOf(build) });
      // What a step prints has ended before its pod says so.
      await (isFollowing ? pause(followPause, over) : untilNews());
    }
  } finally {
    leaving.abort();
  }
}

const isOver = (build: BuildObservation | undefined): boolean => hasEnded(build?.taskRun) || hasEnded(build?.run);

const lostEvent: BuildEvent = { type: 'ended', outcome: { status: 'lost' }, seconds: 0 };

/** @param isReplaced its pod is not the first one: the source was handed out once, so this one cannot build */
function findEnd(build: BuildObservation, isReplaced: boolean): BuildEnd | undefined {
  if (isReplaced) return { status: 'lost' };
  const end = readBuildEnd(build);
  if (end !== undefined) return end;
  const { spec, metadata } = build.run;
  const isPending = (spec as { status?: string } | undefined)?.status === 'PipelineRunPending';
  const age = Date.now() - Date.parse(metadata.creationTimestamp ?? '');
  return isPending && metadata.annotations?.[annotations.refused] === undefined && age > pendingMilliseconds
    ? { status: 'lost' }
    : undefined;
}

/** From the start of its first step. */
function secondsOf({ pod, taskRun }: BuildObservation): number {
  const [first] = pod === undefined ? [] : listSteps(pod);
  const { completionTime } = (taskRun?.status ?? {}) as { completionTime?: string };
  const from = Date.parse(first?.terminated?.startedAt ?? '');
  const to = succeededOf(taskRun) === undefined || completionTime === undefined ? Date.now() : Date.parse(completionTime);
  return Number.isNaN(from) ? 0 : Math.max(0, (to - from) / 1000);
}

/** Asks until the API server answers. @param ask nothing but the cluster */
async function waitForCluster<Result>(ask: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!isOutage(error) || signal.aborted) throw error;
      await pause(outageMilliseconds, signal);
    }
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
