import { afterAll, beforeAll, expect, it } from 'vitest';
import { createBuilds } from '#shared/core/builds/builds-service.ts';
import { createHouse, type House } from '#test/support/house.ts';

let house: House;
beforeAll(async () => {
  house = await createHouse();
});
afterAll(() => house.close());

it('finds the cache Cold for the first build, ever and after a flush, also after one that was rolled back, and Warm from the second on', async () => {
  const owner = await house.signUp();
  const app = await house.createApp(owner);
  const commit = await app.commit();
  expect((await app.push('HEAD:refs/tags/v1')).code).toBe(0);
  const enqueue = () => Promise.reject(new Error('there is no room for a job'));
  const crowded = createBuilds({ ...house.context, jobs: { enqueue } });
  for (const flushed of [false, true]) {
    expect((await house.services.buildCache.flushCache(owner, app.id)).flushed).toBe(flushed);
    await expect(crowded.startBuild(owner, app.id, { commit })).rejects.toThrow('no room');
    const states: string[] = [];
    for (let count = 0; count < 3; count++)
      states.push((await house.services.builds.startBuild(owner, app.id, { commit })).cacheState);
    expect(states).toEqual(['Cold', 'Warm', 'Warm']);
  }
});
