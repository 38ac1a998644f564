import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { OpenDatabase } from '#deploy/parts/open-database.ts';
import { startGraphileWorker } from '#shared/jobs/graphile/graphile-jobs.ts';
import type { JobHandlers } from '#shared/jobs/jobs.ts';
import type { Log } from '#shared/log.ts';
import { measureJobs } from '#shared/metrics/measured-jobs.ts';
import type { Metrics } from '#shared/metrics/metrics.ts';

export interface WorkerParts {
  database: OpenDatabase;
  handlers: JobHandlers;
  metrics: Metrics;
  log: Log;
  /** No other process runs jobs of this database: those that a crash left locked are free at once. */
  soleWorker: boolean;
}

/** Rollouts wait more than they work; builds are bounded by the machine, each in its own control group. */
const concurrency = 8;

/** Runs jobs. At the end it waits for those that run, as their handlers do when their signal aborts. */
export async function startWorker(
  lifetime: Lifetime,
  { database: { pool, db }, handlers, metrics, log, soleWorker }: WorkerParts,
): Promise<void> {
  const worker = await startGraphileWorker({
    pool,
    db,
    handlers: measureJobs(handlers, metrics),
    log,
    concurrency,
    soleWorker,
  });
  lifetime.onEnd(() => worker.stop());
}
