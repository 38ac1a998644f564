import type { Context } from '#shared/core/context.ts';
import { appendBuildLog, type NewLogLines } from '#shared/core/telemetry/build-logs-store.ts';
import { isForeignKeyViolation } from '#shared/database/violations.ts';
import type { BuildId } from '#shared/ids.ts';
import { limits } from '#shared/limits.ts';

const flushMilliseconds = 50;
/** Waits between attempts to store lines, together as long as a database may take to come back. Then the lines are lost. */
const retryMilliseconds = [100, 300, 1000, 3000, 5000, 10_000, 10_000];

/** Key of the wakeup that says that a build's log has grown, or that the build or its deploy is over. */
export function buildLogKey(buildId: BuildId): string {
  return `build:${buildId}`;
}

/** Writes the log of one build. */
export interface BuildLogWriter {
  /** @param number the line's number on the platform, for lines that come from there */
  line(text: string, number?: number): void;
  /** Resolves when every line so far is stored or lost. */
  flush(): Promise<void>;
}

/** Options of `createBuildLogWriter`. */
export interface BuildLogWriterOptions {
  buildId: BuildId;
  /** Replaces secrets in a line. */
  redact(text: string): string;
  /**
   * Decides whether this writer may still write; see `NewLogLines`. Left out: it always may.
   * @param number of the last line of the batch that comes from the platform; undefined when there is none
   */
  fence?(number: number | undefined): NewLogLines['fence'];
}

interface Batch {
  lines: { ts: Date; line: string }[];
  number: number | undefined;
}

/** Stores lines in small batches, in order, after those the log has. A build has one writer at a time. */
export function createBuildLogWriter(
  { db, clock, log, wakeups }: Context,
  { buildId, redact, fence }: BuildLogWriterOptions,
): BuildLogWriter {
  let pending: Batch = { lines: [], number: undefined };
  let writing: Promise<void> = Promise.resolve();
  let scheduled = false;
  let bytes = 0;

  const write = async (): Promise<void> => {
    scheduled = false;
    const { lines, number } = pending;
    pending = { lines: [], number: undefined };
    if (lines.length === 0) return;
    for (const [attempt, milliseconds] of [...retryMilliseconds, undefined].entries()) {
      try {
        await appendBuildLog(db, { buildId, lines, again: attempt > 0, fence: fence?.(number) });
        break;
      } catch (error) {
        // The build was purged.
        if (isForeignKeyViolation(error)) return;
        if (milliseconds === undefined) return log.error('Lines of a build log were lost.', { buildId, error });
        if (attempt === 0) log.warn('Lines of a build log cannot be stored yet; trying again.', { buildId, error });
        await clock.sleep(milliseconds);
      }
    }
    wakeups.wake(buildLogKey(buildId));
  };
  const enqueueWrite = (): Promise<void> => {
    writing = writing.then(write);
    return writing;
  };

  return {
    line(text, number) {
      if (bytes > limits.build.logBytes) return;
      bytes += text.length + 1;
      // PostgreSQL's text type cannot store NUL.
      const stored =
        bytes > limits.build.logBytes ? ' !     The log is too long; the rest is left out.' : redact(text.replaceAll('\0', ''));
      pending.lines.push({ ts: clock.now(), line: stored });
      pending.number = number ?? pending.number;
      if (scheduled) return;
      scheduled = true;
      setTimeout(() => void enqueueWrite(), flushMilliseconds);
    },
    flush: enqueueWrite,
  };
}
