import { expect, it } from 'vitest';
import * as appJobs from '#shared/core/app-jobs.ts';
import type { Db } from '#shared/database/db.ts';
import { type JobName, type Jobs, jobKinds } from '#shared/jobs/jobs.ts';

it('all jobs of one queue are run by one pool of workers: in two they would overtake each other', async () => {
  const queues = new Map<string, Set<JobName>>();
  const jobs: Jobs = {
    async enqueue(_db, name, _payload, options) {
      if (options?.queue !== undefined) queues.set(options.queue, (queues.get(options.queue) ?? new Set()).add(name));
    },
  };
  type Enqueue = (context: { jobs: Jobs }, db: Db, ...rest: string[]) => Promise<void>;
  for (const enqueue of Object.values(appJobs)) await (enqueue as Enqueue)({ jobs }, undefined as unknown as Db, 'app', 'x', 'y');
  expect(queues.size).toBeGreaterThan(1);
  for (const names of queues.values()) expect(new Set([...names].map((name) => jobKinds[name].pool)).size).toBe(1);
});
