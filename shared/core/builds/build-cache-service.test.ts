import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { createBuildCache } from '#shared/core/builds/build-cache-service.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import type { Build } from '#shared/core/builds/builds.ts';
import type { BuildId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('a flush of the build cache', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  let commit: string;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.buildStep = async () => undefined;
    app = await core.createApp(owner);
    commit = await app.commit();
    await app.push('HEAD:refs/tags/v1');
  });

  const flush = () => core.services.buildCache.flushCache(owner, app.id);
  const start = (): Promise<Build> => core.services.builds.startBuild(owner, app.id, { commit });
  const run = (id: BuildId): Promise<void> => runBuildJob(core.context, id, never);
  const read = (id: BuildId): Promise<Build> => core.services.builds.readBuild(owner, app.id, id);
  const readLog = async (id: BuildId): Promise<string> =>
    (await core.services.builds.readBuildLog(owner, app.id, id, {})).map(({ line }) => line).join('\n');

  it('whose deletion takes time is answered at once; the next build waits for it, and is Cold', async () => {
    await run((await start()).id);
    const finish = core.platform.caches.holdDeletions();
    expect(await flush()).toMatchObject({ flushed: true, message: 'Build cache flushed; the next build starts cold.' });
    expect(await flush()).toMatchObject({ flushed: false, message: 'The build cache is being flushed already.' });
    const build = await start();
    expect(build.cacheState).toBe('Cold');
    let states: unknown;
    core.buildStep = async () => {
      states = await core.platform.caches.readCache(app.id);
    };
    const running = run(build.id);
    await expect.poll(() => readLog(build.id)).toContain('-----> Waiting until the old build cache is deleted');
    expect((await read(build.id)).status).toBe('running');
    expect(states).toBeUndefined();
    finish();
    await running;
    expect(await read(build.id)).toMatchObject({ status: 'succeeded', cacheState: 'Cold' });
    expect(states).toMatchObject({ state: 'ready' });
    expect((await start()).cacheState).toBe('Warm');
  });

  it('is reported although a worker has deleted the volume first', async () => {
    await run((await start()).id);
    const { caches } = core.context.platform;
    const late: typeof caches = {
      ...caches,
      async deleteCache(id) {
        await caches.deleteCache(id);
        return caches.deleteCache(id);
      },
    };
    const service = createBuildCache({ ...core.context, platform: { ...core.platform, caches: late } });
    expect(await service.flushCache(owner, app.id)).toMatchObject({ flushed: true });
    expect(await service.flushCache(owner, app.id)).toMatchObject({ flushed: false });
  });

  it('lets a build be canceled that waits for the deletion', async () => {
    await run((await start()).id);
    const finish = core.platform.caches.holdDeletions();
    await flush();
    const build = await start();
    const running = run(build.id);
    await expect.poll(() => readLog(build.id)).toContain('-----> Waiting');
    await core.services.builds.cancelBuild(owner, app.id, build.id);
    await running;
    finish();
    expect(await read(build.id)).toMatchObject({ status: 'canceled' });
  });

  it('that ends before it has deleted the volume is finished before the next build, which is Cold and finds nothing', async () => {
    await run((await start()).id);
    const { caches } = core.context.platform;
    const { deleteCache } = caches;
    const crashing = { ...caches, deleteCache: () => Promise.reject(new Error('the process is gone')) };
    const crashed = createBuildCache({ ...core.context, platform: { ...core.platform, caches: crashing } });
    await expect(crashed.flushCache(owner, app.id)).rejects.toThrow('the process is gone');
    expect(await caches.readCache(app.id)).toMatchObject({ state: 'ready' });
    const build = await start();
    expect(build.cacheState).toBe('Cold');
    const events: string[] = [];
    core.platform.caches.deleteCache = async (id) => {
      if (id === app.id) events.push('deleted');
      return deleteCache(id);
    };
    core.buildStep = async ({ appId }) => {
      if (appId === app.id) events.push('built');
    };
    try {
      await core.startWorker();
      await expect.poll(async () => (await read(build.id)).status, { timeout: 10_000 }).toBe('succeeded');
    } finally {
      core.platform.caches.deleteCache = deleteCache;
      await core.stopWorker();
    }
    expect(events).toEqual(['deleted', 'built']);
  });

  it('while a build runs is answered at once; that build goes on, one that waits and the next are Cold', async () => {
    const [begun, paused] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await run((await start()).id);
    core.buildStep = async () => {
      begun.resolve();
      await paused.promise;
    };
    const running = await start();
    const runs = run(running.id);
    await begun.promise;
    const waiting = await start();
    expect([running.cacheState, waiting.cacheState]).toEqual(['Warm', 'Warm']);
    expect(await flush()).toMatchObject({ flushed: true });
    expect(await flush()).toMatchObject({ flushed: false });
    expect(await read(waiting.id)).toMatchObject({ status: 'queued', cacheState: 'Cold' });
    paused.resolve();
    await runs;
    expect(await read(running.id)).toMatchObject({ status: 'succeeded', cacheState: 'Warm' });
    expect((await start()).cacheState).toBe('Cold');
  });
});

it('a cache that was created for a build of an app that is purged meanwhile is deleted', async () => {
  const core = await createCoreFixture();
  try {
    const owner = await core.signUp();
    const app = await core.createApp(owner);
    const commit = await app.commit();
    await app.push('HEAD:refs/tags/v1');
    const { ensureCache } = core.platform.caches;
    core.platform.caches.ensureCache = async (id) => {
      const answer = await ensureCache(id);
      await core.context.db.deleteFrom('apps').where('id', '=', id).execute();
      return answer;
    };
    await expect(core.services.builds.startBuild(owner, app.id, { commit })).rejects.toMatchObject({ code: 'not_found' });
    expect(await core.platform.caches.readCache(app.id)).toBeUndefined();
  } finally {
    await core.close();
  }
});
