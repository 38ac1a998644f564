import { EventEmitter } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { Logger, type Runner, run, runMigrations, type TaskList } from 'graphile-worker';
import { type Kysely, sql } from 'kysely';
import type pg from 'pg';
import type { Tables } from '#shared/database/db.ts';
import { keepLeases } from '#shared/jobs/graphile/leases.ts';
import type { JobHandlers, JobName, Jobs, JobWorker } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';

/** Enqueues by SQL, so that a job commits with the rows that make it necessary. The worker's schema must exist. */
export const graphileJobs: Jobs = {
  async enqueue(db, name, payload, options = {}) {
    await sql`select graphile_worker.add_job(
      identifier => ${name},
      payload => ${JSON.stringify(payload)}::json,
      queue_name => ${options.queue ?? null},
      run_at => ${options.runAt ?? null}::timestamptz,
      job_key => ${options.key ?? null},
      job_key_mode => ${options.keepsTime === true ? 'preserve_run_at' : 'replace'})`.execute(db);
  },
};

/** Brings the worker's own schema up to date; before the first `enqueue`, and harmless again. */
export async function migrateJobs(pool: pg.Pool, log: Log): Promise<void> {
  await runMigrations({ pgPool: pool, logger: workerLogger(log) });
}

export interface GraphileWorkerOptions {
  pool: pg.Pool;
  db: Kysely<Tables>;
  handlers: JobHandlers;
  log: Log;
  /** Jobs at once in this process. */
  concurrency: number;
  /** True when no other worker process can be alive: jobs of dead ones are taken over at once, not when leases end. */
  soleWorker: boolean;
  /** Of a worker that does not renew it any more jobs are taken over after so long. */
  leaseSeconds?: number;
}

const defaultLeaseSeconds = 15;
/** Between two attempts to go on after the database was away. */
const restartMilliseconds = 1000;
/** How long a worker that gives up by itself has for its end. Then another takes its place. */
const endMilliseconds = 5000;

interface RunningWorker {
  readonly runner: Runner;
  /** Resolves when it has ended, or should have, with the reason. */
  readonly ended: Promise<unknown>;
}

/** Starts taking jobs. What a dead worker held is taken over within the lease time, or at once with `soleWorker`. */
export async function startGraphileWorker(options: GraphileWorkerOptions): Promise<JobWorker> {
  const stopping = new AbortController();
  const events = new EventEmitter();
  const leases = await keepLeases({ leaseSeconds: defaultLeaseSeconds, ...options, events });
  const start = async (): Promise<RunningWorker> => {
    const lost = new AbortController();
    const giveUp = Promise.withResolvers<void>();
    events.once('pool:gracefulShutdown', giveUp.resolve);
    // It would take no more jobs, and wait for those that it runs: a long build would hold up everything.
    const overdue = giveUp.promise.then(async () => {
      lost.abort(new Error('The worker has lost its database.'));
      await delay(endMilliseconds, undefined, { ref: false });
      return new Error('It did not end.');
    });
    try {
      const runner = await run({
        pgPool: options.pool,
        concurrency: options.concurrency,
        noHandleSignals: true,
        // LISTEN wakes the worker at once; the poll is for jobs whose time has come and for a lost connection.
        pollInterval: 1000,
        events,
        // In batches (of no delay) because those are awaited and tried again while the database is away: a single one that
        // fails would be a rejection that nobody handles, the end of the process.
        preset: { worker: { completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
        logger: workerLogger(options.log),
        taskList: taskList(options, AbortSignal.any([stopping.signal, lost.signal])),
      });
      const ended = runner.promise.catch((error: unknown) => error);
      return { runner, ended: Promise.race([ended, overdue]) };
    } catch (error) {
      events.off('pool:gracefulShutdown', giveUp.resolve);
      throw error;
    }
  };
  let worker: RunningWorker | undefined = await start();
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
      await leases.release();
    },
  };
}

function taskList({ handlers, log }: GraphileWorkerOptions, signal: AbortSignal): TaskList {
  const names = Object.keys(handlers) as JobName[];
  return Object.fromEntries(
    names.map((name) => [
      name,
      async (payload: unknown) => {
        const handler = handlers[name] as (payload: unknown, signal: AbortSignal) => Promise<void>;
        try {
          await handler(payload, signal);
        } catch (error) {
          if (!signal.aborted) log.error('A job failed and will be tried again.', { job: name, error });
          throw error;
        }
      },
    ]),
  );
}

/** graphile-worker is talkative: its own failures are ours to know, the rest is for debugging. */
function workerLogger(log: Log): Logger {
  return new Logger(() => (level, message) => {
    if (level === 'error' || level === 'warning') log.debug(`graphile-worker: ${message}`);
  });
}
