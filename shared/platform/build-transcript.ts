import type { BuildEvent, BuildOutcome } from '#shared/platform/builds.ts';

/** The lines and the end of one build, kept in memory for any number of watchers. */
export interface BuildTranscript {
  readonly ended: boolean;
  /** Ignored once the build has ended. */
  addLine(line: string): void;
  /** The first end counts; later ones are ignored. */
  end(outcome: BuildOutcome, seconds: number): void;
  /** Ends it with an error of the platform's own: watchers throw it. */
  fail(error: unknown): void;
  /** See `Builds.watchBuild`. */
  watch(afterLine: number, signal: AbortSignal): AsyncGenerator<BuildEvent>;
}

type End = { event: Extract<BuildEvent, { type: 'ended' }> } | { error: unknown };

/** An empty transcript of a build that has not ended. */
export function createBuildTranscript(): BuildTranscript {
  const lines: string[] = [];
  let end: End | undefined;
  let changed = Promise.withResolvers<void>();

  const announce = (): void => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const finish = (how: End): void => {
    if (end !== undefined) return;
    end = how;
    announce();
  };
  return {
    get ended() {
      return end !== undefined;
    },
    addLine(line) {
      if (end !== undefined) return;
      lines.push(line);
      announce();
    },
    end: (outcome, seconds) => finish({ event: { type: 'ended', outcome, seconds } }),
    fail: (error) => finish({ error }),
    async *watch(afterLine, signal) {
      signal.addEventListener('abort', announce);
      try {
        for (let number = afterLine + 1; ; ) {
          signal.throwIfAborted();
          const line = lines[number - 1];
          if (line !== undefined) {
            yield { type: 'line', number, line };
            number += 1;
          } else if (end === undefined) {
            await changed.promise;
          } else {
            if ('error' in end) throw end.error;
            yield end.event;
            return;
          }
        }
      } finally {
        signal.removeEventListener('abort', announce);
      }
    },
  };
}
