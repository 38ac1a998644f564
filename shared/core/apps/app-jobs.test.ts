import { expect, it } from 'vitest';
import * as appJobs from '#shared/core/apps/app-jobs.ts';
import type { Context } from '#shared/core/context.ts';
import type { AppId } from '#shared/ids.ts';
import { type EnqueueOptions, type JobName, slotsOfJobs } from '#shared/jobs/jobs.ts';
import { createCoreFixture } from '#test/support/core/core-fixture.ts';

it('every job of an app is in the name of its tenant, and shares its slots with those of its queue that it must not overtake', async () => {
  const core = await createCoreFixture();
  try {
    const owner = await core.signUp();
    const { id } = await core.services.apps.createApp(owner, {});
    const enqueued = new Map<JobName, EnqueueOptions | undefined>();
    const jobs: Context['jobs'] = { enqueue: async (_db, name, _payload, options) => void enqueued.set(name, options) };
    const rest = [{}, 'y'] as unknown as [never, never];
    const context = { ...core.context, jobs };
    type Enqueue = (...args: [Context, Context['db'], AppId, never, never]) => Promise<void>;
    for (const enqueue of Object.values(appJobs)) await (enqueue as Enqueue)(context, core.context.db, id, ...rest);
    for (const options of enqueued.values()) expect(options?.tenant).toBe(owner.tenantId);
    const queueOf = (name: JobName) => enqueued.get(name)?.queue;
    for (const together of [
      ['build', 'delete-cache'],
      ['ensure-app', 'ensure-addon', 'ensure-workload', 'restart'],
    ] as const) {
      expect(new Set(together.map(queueOf)).size).toBe(1);
      expect(new Set(together.map((name) => slotsOfJobs[name])).size).toBe(1);
    }
  } finally {
    await core.close();
  }
});
