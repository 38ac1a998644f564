import type { BuildId } from '#shared/ids.ts';
import { BuildFailure } from '#shared/platform/build-failure.ts';
import { type BuildTranscript, createBuildTranscript } from '#shared/platform/build-transcript.ts';
import type { BuildOutcome, BuildSpec, Builds, LineSink } from '#shared/platform/builds.ts';
import { describeDuration } from '#shared/platform/describe-duration.ts';
import { createSlots } from '#shared/slots.ts';

/**
 * Builds to the end, calling `line` as output appears. It ends soon after the signal aborts; what it returns or throws
 * then is ignored.
 * @throws BuildFailure for what the build's own source or tools did wrong; anything else is the platform's fault
 */
export type RunBuild = (
  spec: BuildSpec,
  line: LineSink,
  signal: AbortSignal,
) => Promise<Extract<BuildOutcome, { status: 'succeeded' }>>;

export interface InProcessBuilds extends Builds {
  /** Ends a build and forgets it, as a crash of its process would: watchers get the outcome `lost`. */
  loseBuild(buildId: BuildId): Promise<void>;
  /** Ends all builds that way. No build can be started from then on. */
  stop(): Promise<void>;
}

export interface InProcessBuildsOptions {
  runBuild: RunBuild;
  /** Builds at once; the others wait in order. */
  atOnce: number;
  /** A signal that aborts after so many seconds; another one in tests. */
  timeout?(seconds: number): AbortSignal;
}

const abortAfter = (seconds: number): AbortSignal => AbortSignal.timeout(seconds * 1000);

interface KnownBuild {
  readonly transcript: BuildTranscript;
  readonly end: AbortController;
  /** Resolves when nothing of it runs any more. */
  readonly done: Promise<void>;
}

/** Builds that run in this process and are known by it alone: with its end they are lost. */
export function createInProcessBuilds({ runBuild, atOnce, timeout = abortAfter }: InProcessBuildsOptions): InProcessBuilds {
  const known = new Map<BuildId, KnownBuild>();
  const slots = createSlots(atOnce);
  let stopped = false;

  async function run(spec: BuildSpec, transcript: BuildTranscript, ending: AbortSignal): Promise<void> {
    let begun: number | undefined;
    const end = (outcome: BuildOutcome): void =>
      transcript.end(outcome, begun === undefined ? 0 : (performance.now() - begun) / 1000);
    let deadline: AbortSignal | undefined;
    try {
      const release = await slots.take(ending);
      begun = performance.now();
      deadline = timeout(spec.timeoutSeconds);
      try {
        const outcome = await runBuild(spec, (line) => transcript.addLine(line), AbortSignal.any([ending, deadline]));
        end(ending.aborted ? { status: 'canceled' } : outcome);
      } finally {
        release();
      }
    } catch (error) {
      if (ending.aborted) end({ status: 'canceled' });
      else if (deadline?.aborted === true) end({ status: 'failed', cause: describeTimeout(spec.timeoutSeconds) });
      else if (error instanceof BuildFailure) end({ status: 'failed', cause: error.message });
      else transcript.fail(error);
    }
  }

  async function loseBuild(buildId: BuildId): Promise<void> {
    const build = known.get(buildId);
    if (build === undefined) return;
    // Forgotten at once: it may be started again while the rest of it ends.
    known.delete(buildId);
    build.transcript.end({ status: 'lost' }, 0);
    build.end.abort(new Error('The platform is stopping.'));
    await build.done;
  }

  return {
    async startBuild(spec) {
      if (stopped || known.has(spec.buildId)) {
        await spec.source.close();
        if (stopped) throw new Error('The platform is stopping.');
        return;
      }
      const transcript = createBuildTranscript();
      const end = new AbortController();
      const close = (): Promise<void> => spec.source.close().catch(() => undefined);
      const done = run(spec, transcript, end.signal).then(close);
      known.set(spec.buildId, { transcript, end, done });
    },
    async *watchBuild(buildId, afterLine, signal) {
      const build = known.get(buildId);
      if (build === undefined) yield { type: 'ended', outcome: { status: 'lost' }, seconds: 0 };
      else yield* build.transcript.watch(afterLine, signal);
    },
    async cancelBuild(buildId) {
      const build = known.get(buildId);
      if (build === undefined || build.transcript.ended) return false;
      build.end.abort(new Error('The build was canceled.'));
      return true;
    },
    // The end of a build in this process is known when it happens.
    checkBuild: async () => undefined,
    async deleteBuild(buildId) {
      const build = known.get(buildId);
      if (build === undefined) return false;
      build.end.abort(new Error('The build was deleted.'));
      await build.done;
      return known.delete(buildId);
    },
    loseBuild,
    async stop() {
      stopped = true;
      await Promise.all([...known.keys()].map(loseBuild));
    },
  };
}

function describeTimeout(seconds: number): string {
  return `The build took longer than ${describeDuration(seconds)} and was stopped.`;
}
