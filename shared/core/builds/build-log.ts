import { type BuildRow, isBuildOver, readBuildById } from '#shared/core/builds/builds-store.ts';
import type { Context } from '#shared/core/context.ts';
import { readDeployOfRelease } from '#shared/core/releases/deploys-store.ts';
import { buildLogKey } from '#shared/core/telemetry/build-log-writer.ts';
import { type BuildLogLine, readBuildLog } from '#shared/core/telemetry/build-logs-store.ts';
import type { BuildId } from '#shared/ids.ts';

const pageLines = 1000;
/** Another process may write the log: without its wakeup this is how late a line can be. */
const pollMilliseconds = 500;
/** Lines that a poller keeps for its readers. Who is further behind reads them from the database. */
const recentLines = 1000;

/**
 * Lines as they come, from the one after number `afterSeq`, until the build and the deploy it led to are over. All readers of a
 * build in this process share one poller.
 */
export async function* followBuildLog(
  context: Context,
  buildId: BuildId,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<BuildLogLine> {
  const poller = openPoller(context, buildId, afterSeq);
  let seq = afterSeq;
  try {
    for (let look = await poller.next(undefined, signal); look !== undefined; look = await poller.next(look, signal)) {
      while (seq < look.last) {
        const page = look.linesAfter(seq) ?? (await readBuildLog(context.db, buildId, { afterSeq: seq, limit: pageLines }));
        if (page.length === 0) break;
        for (const line of page) {
          if (signal.aborted) return;
          yield line;
          seq = line.seq;
        }
      }
      if (look.over) return;
    }
  } finally {
    poller.close();
  }
}

/** What a poller has seen. */
interface Look {
  /** The number of the last line. */
  last: number;
  /** Whether the build and its deploy were over before the last line was read: then no line follows. */
  over: boolean;
  /** The lines after one that was read, from memory; undefined when it does not have them any more. */
  linesAfter(seq: number): readonly BuildLogLine[] | undefined;
}

interface Poller {
  /** A look that is newer than `seen`. Undefined when the signal aborts. @throws when the database fails */
  next(seen: Look | undefined, signal: AbortSignal): Promise<Look | undefined>;
  /** To be called by each reader when it reads no more. */
  close(): void;
}

interface SharedPoller extends Poller {
  readers: number;
}

const pollers = new WeakMap<Context, Map<BuildId, SharedPoller>>();

function openPoller(context: Context, buildId: BuildId, afterSeq: number): Poller {
  const ofContext = pollers.get(context) ?? new Map<BuildId, SharedPoller>();
  pollers.set(context, ofContext);
  const known = ofContext.get(buildId);
  const forget = (): void => {
    // A later poller may be in its place.
    if (ofContext.get(buildId) === poller) ofContext.delete(buildId);
  };
  const poller = known ?? startPoller(context, { buildId, afterSeq }, forget);
  ofContext.set(buildId, poller);
  poller.readers += 1;
  return poller;
}

/** @param onEnd is called when nobody reads any more, or reading has failed */
function startPoller(
  context: Context,
  { buildId, afterSeq }: { buildId: BuildId; afterSeq: number },
  onEnd: () => void,
): SharedPoller {
  const stop = new AbortController();
  let look: Look | undefined;
  let changed = Promise.withResolvers<void>();
  const publish = (newer: Look): void => {
    look = newer;
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const fail = (error: unknown): void => {
    onEnd();
    changed.promise.catch(() => undefined);
    changed.reject(error);
  };
  void poll(context, { buildId, afterSeq }, stop.signal, publish).catch(fail);
  const poller: SharedPoller = {
    readers: 0,
    async next(seen, signal) {
      while (look === undefined || look === seen) {
        if (signal.aborted) return undefined;
        await changedOrAborted(changed.promise, signal);
      }
      return look;
    },
    close() {
      poller.readers -= 1;
      if (poller.readers > 0) return;
      onEnd();
      stop.abort();
    },
  };
  return poller;
}

async function poll(
  context: Context,
  { buildId, afterSeq }: { buildId: BuildId; afterSeq: number },
  stopped: AbortSignal,
  publish: (look: Look) => void,
): Promise<void> {
  let last = afterSeq;
  let recent: readonly BuildLogLine[] = [];
  let published = false;
  while (!stopped.aborted) {
    // Begun before anything is read: a change in between ends the wait.
    const changed = context.wakeups.wait(buildLogKey(buildId), pollMilliseconds, stopped);
    // Asked before the lines are read: what is written between the two is then read in the last round.
    const over = await isOver(context, buildId);
    const before = last;
    for (let full = true; full; ) {
      const page = await readBuildLog(context.db, buildId, { afterSeq: last, limit: pageLines });
      recent = [...recent, ...page].slice(-recentLines);
      last = page.at(-1)?.seq ?? last;
      full = page.length === pageLines;
    }
    const lines = recent;
    const first = lines[0]?.seq ?? last + 1;
    if (over || !published || last > before)
      publish({ last, over, linesAfter: (seq) => (seq + 1 < first ? undefined : lines.filter((line) => line.seq > seq)) });
    published = true;
    if (over) return;
    await changed;
  }
}

/** Resolves at the first of both. @throws what `changed` rejects with */
async function changedOrAborted(changed: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  const onAbort = (): void => aborted.resolve();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    await Promise.race([changed, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', onAbort);
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
