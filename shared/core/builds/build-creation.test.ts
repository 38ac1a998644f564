import { afterAll, beforeAll, expect, it } from 'vitest';
import { createBuilds } from '#shared/core/builds/builds-service.ts';
import { type CoreFixture, createCoreFixture } from '#test/support/core/core-fixture.ts';

let core: CoreFixture;
beforeAll(async () => {
  core = await createCoreFixture();
});
afterAll(() => core.close());

it('finds the cache Cold for the first build, ever and after a flush, also after one that was rolled back, and Warm from the second on', async () => {
  const owner = await core.signUp();
  const app = await core.createApp(owner);
  const commit = await app.commit();
  expect((await app.push('HEAD:refs/tags/v1')).code).toBe(0);
  const enqueue = () => Promise.reject(new Error('there is no room for a job'));
  const crowded = createBuilds({ ...core.context, jobs: { enqueue } });
  for (const flushed of [false, true]) {
    expect((await core.services.buildCache.flushCache(owner, app.id)).flushed).toBe(flushed);
    await expect(crowded.startBuild(owner, app.id, { commit })).rejects.toThrow('no room');
    const states: string[] = [];
    for (let count = 0; count < 3; count++)
      states.push((await core.services.builds.startBuild(owner, app.id, { commit })).cacheState);
    expect(states).toEqual(['Cold', 'Warm', 'Warm']);
  }
});
