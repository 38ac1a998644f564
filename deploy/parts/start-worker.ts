import type { Lifetime } from '#deploy/parts/lifetime.ts';
import type { OpenDatabase } from '#deploy/parts/open-database.ts';
import { startGraphileWorker, type WorkerSlots } from '#shared/jobs/graphile/graphile-worker.ts';
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

/**
 * Jobs of each kind at once. Each slot polls for itself, so their number is what the platform costs while it is idle. A tenant gets
 * half of a kind's slots at most.
 */
const slots: WorkerSlots = {
  builds: 8,
  releases: 6,
  rollouts: 8,
  apps: 8,
  deletions: 2,
  repositories: 4,
  sources: 4,
  domains: 2,
};

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
    slots,
    soleWorker,
  });
  lifetime.onEnd(() => worker.stop());
}
