import type { Db } from '#shared/database/db.ts';
import { describeJobs } from '#shared/jobs/contract/jobs.ts';
import { createFakeJobs } from '#shared/jobs/fake-jobs.ts';
import { graphileJobs } from '#shared/jobs/graphile/graphile-jobs.ts';
import { startGraphileWorker } from '#shared/jobs/graphile/graphile-worker.ts';
import { migrateJobs } from '#shared/jobs/graphile/migrate-jobs.ts';
import { createLog } from '#shared/log.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';

const log = createLog('silent', () => undefined);

describeJobs('fake', async () => {
  const jobs = createFakeJobs();
  return {
    db: undefined as unknown as Db,
    jobs,
    start: async (handlers) => jobs.start(handlers),
    close: async () => undefined,
  };
});

describeJobs('graphile-worker', async () => {
  const { db, pool, close } = await createTestDatabase();
  await migrateJobs(pool, log);
  const slots = { builds: 2, releases: 2, rollouts: 2, apps: 4, deletions: 2, repositories: 2, sources: 2, domains: 1 };
  return {
    db,
    jobs: graphileJobs,
    start: (handlers) => startGraphileWorker({ pool, db, handlers, log, slots, soleWorker: false }),
    close,
  };
});
