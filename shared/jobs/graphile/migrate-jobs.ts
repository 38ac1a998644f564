import { runMigrations } from 'graphile-worker';
import type pg from 'pg';
import { workerLogger } from '#shared/jobs/graphile/worker-logger.ts';
import type { Log } from '#shared/log.ts';

/** Brings the worker's own schema up to date; before the first `enqueue`, and harmless again. */
export async function migrateJobs(pool: pg.Pool, log: Log): Promise<void> {
  await runMigrations({ pgPool: pool, logger: workerLogger(log) });
}
