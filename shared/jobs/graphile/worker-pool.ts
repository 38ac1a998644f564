import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { type Runner, run, type TaskList } from 'graphile-worker';
import type pg from 'pg';
import type { FairSlots } from '#shared/jobs/graphile/fair-slots.ts';
import { workerLogger } from '#shared/jobs/graphile/worker-logger.ts';
import type { JobWorker } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';

export interface WorkerPoolOptions {
  pool: pg.Pool;
  log: Log;
  /** Jobs at once. */
  slots: number;
  /** The tasks whose signal aborts when they are to stop. */
  createTasks(signal: AbortSignal): TaskList;
  /** Called with the events of graphile-worker each time that it is about to be started, and awaited. */
  onStart(events: EventEmitter): Promise<void>;
  /** Decides which jobs may be taken; other ones after each start. */
  createFairSlots(): FairSlots;
}

/** Between two attempts to go on after the database was away. */
const restartMilliseconds = 1000;
/** How long a worker that gives up by itself has for its end. Then another takes its place. */
const endMilliseconds = 5000;

/** After a job has ended, until that is recorded and its queue is free. */
const nudgeMilliseconds = 50;

interface RunningPool {
  readonly runner: Runner;
  /** Resolves when it has ended, or should have, with the reason. */
  readonly ended: Promise<unknown>;
}

/** Keeps one pool of graphile-worker running, whatever becomes of the database meanwhile. */
export async function startWorkerPool(options: WorkerPoolOptions): Promise<JobWorker> {
  const stopping = new AbortController();
  const start = (): Promise<RunningPool> => startPool(options, stopping.signal);
  let worker: RunningPool | undefined = await start();
  const running = (async () => {
    while (!stopping.signal.aborted) {
      // It ends where it cannot record what became of a job: that job is taken over as those of the dead are.
      const problem: unknown = await worker?.ended;
      worker = undefined;
      if (stopping.signal.aborted) return;
      options.log.warn('The worker of jobs ended; starting another.', { error: problem });
      await delay(restartMilliseconds, undefined, { signal: stopping.signal }).catch(() => undefined);
      worker = await start().catch(() => undefined);
    }
  })();
  return {
    async stop() {
      stopping.abort(new Error('The worker is stopping.'));
      // One that has ended meanwhile refuses to be stopped.
      await worker?.runner.stop().catch(() => undefined);
      await running;
    },
  };
}

async function startPool(
  { pool, log, slots, createTasks, onStart, createFairSlots }: WorkerPoolOptions,
  stopping: AbortSignal,
): Promise<RunningPool> {
  const events = new EventEmitter();
  await onStart(events);
  const fairSlots = createFairSlots();
  fairSlots.follow(events);
  const ending = new AbortController();
  events.once('pool:create', ({ workerPool }: { workerPool: { nudge(count: number): void } }) => {
    // The slot that ran the job looks for the next one before the end is recorded, while the queue is still locked. Without a nudge
    // the next job of the queue would wait for a poll, up to its whole interval when the idle slots poll at the same time.
    const nudge = (): void => void (ending.signal.aborted || workerPool.nudge(1));
    events.on('job:complete', () => setTimeout(nudge, nudgeMilliseconds).unref());
  });
  const lost = new AbortController();
  const giveUp = Promise.withResolvers<void>();
  events.once('pool:gracefulShutdown', () => {
    ending.abort();
    giveUp.resolve();
  });
  // It would take no more jobs, and wait for those that it runs: a long build would hold up everything.
  const overdue = giveUp.promise.then(async () => {
    lost.abort(new Error('The worker has lost its database.'));
    await delay(endMilliseconds, undefined, { ref: false });
    return new Error('It did not end.');
  });
  const runner = await run({
    pgPool: pool,
    concurrency: slots,
    noHandleSignals: true,
    forbiddenFlags: () => fairSlots.forbidFlags(),
    // LISTEN wakes the pool at once; the poll is for jobs whose time has come and for a lost connection.
    pollInterval: 2000,
    events,
    preset: {
      worker: {
        // In batches (of no delay) because those are awaited and tried again while the database is away: a single one that
        // fails would be a rejection that nobody handles, the end of the process.
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
    logger: workerLogger(log),
    taskList: createTasks(AbortSignal.any([stopping, lost.signal])),
  });
  const ended = runner.promise.catch((error: unknown) => error);
  return { runner, ended: Promise.race([ended, overdue]) };
}
