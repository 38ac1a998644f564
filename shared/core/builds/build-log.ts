import { type BuildRow, isBuildOver, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import { type BuildLogLine, readBuildLog } from '#shared/core/telemetry/build-logs-store.ts';
import type { BuildId } from '#shared/ids.ts';

const pageLines = 1000;
/** Another process may write the log: without its wakeup this is how late a line can be. */
const pollMilliseconds = 500;

/** Lines as they come, from the one after number `afterSeq`, until the build and the deploy it led to are over. */
export async function* followBuildLog(
  context: Context,
  buildId: BuildId,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<BuildLogLine> {
  let seq = afterSeq;
  const done = new AbortController();
  const stopped = AbortSignal.any([signal, done.signal]);
  try {
    for (;;) {
      // Begun before anything is read: a change in between ends the wait.
      const changed = context.wakeups.wait(buildLogKey(buildId), pollMilliseconds, stopped);
      // Asked before the lines are read: what is written between the two is then read in the last round.
      const over = await isOver(context, buildId);
      for (let full = true; full; ) {
        const page = await readBuildLog(context.db, buildId, { afterSeq: seq, limit: pageLines });
        for (const line of page) {
          if (signal.aborted) return;
          yield line;
          seq = line.seq;
        }
        full = page.length === pageLines;
      }
      if (over || signal.aborted) return;
      await changed;
    }
  } finally {
    done.abort();
  }
}

async function isOver(context: Context, buildId: BuildId): Promise<boolean> {
  const build = await readBuildById(context.db, buildId);
  return build === undefined || (isBuildOver(build) && (await isDeployOver(context, build)));
}

async function isDeployOver({ db }: Context, build: BuildRow): Promise<boolean> {
  if (build.release_id === null) return true;
  const deploy = await readDeployOfRelease(db, build.release_id);
  return deploy === undefined || (deploy.status !== 'pending' && deploy.status !== 'rolling');
}
