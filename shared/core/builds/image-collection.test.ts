import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { enqueueImageCollections, runCollectImagesJob } from '#shared/core/builds/image-collection.ts';
import type { Context } from '#shared/core/context.ts';
import { runDeployJob } from '#shared/core/releases/deploy-job.ts';
import { createReleases } from '#shared/core/releases/releases-service.ts';
import type { AppId } from '#shared/ids.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const never = new AbortController().signal;

describe('images of old releases', () => {
  let core: CoreFixture;
  let context: Context;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    context = { ...core.context, settings: { ...core.context.settings, keptReleases: 2 } };
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    core.buildStep = async () => undefined;
    core.script = {};
    app = await core.createApp(owner);
  });

  const collect = (using = context) => runCollectImagesJob(using, app.id);
  const rollBack = (release: string) => createReleases(context).rollBack(owner, app.id, release);
  const listReleases = async () => (await core.services.releases.listReleases(owner, app.id, { limit: 50 })).items;

  async function deploy(): Promise<void> {
    const [newest] = (await core.services.releases.listDeploys(owner, app.id, { limit: 1 })).items;
    if (newest !== undefined) await runDeployJob(core.context, newest.id, never);
  }

  async function build(): Promise<void> {
    await app.commit({ version: crypto.randomUUID() });
    await app.push('-f', '-o', 'detach', 'main');
    await runBuildJob(core.context, (await core.latestBuild(app.id)).id, never);
  }

  async function release(): Promise<void> {
    await build();
    await deploy();
  }

  /** Versions of the releases whose image is stored, newest first. */
  async function listStored(): Promise<number[]> {
    const stored = await core.platform.images.listImages(app.id);
    return (await listReleases()).filter(({ imageUrl }) => stored.includes(imageUrl)).map(({ version }) => version);
  }

  it('are deleted. One can roll back to releases that have theirs, and is told what to do about the others', async () => {
    for (let round = 0; round < 4; round += 1) await release();
    expect(await listStored()).toEqual([4, 3, 2, 1]);
    await collect();
    expect(await listStored()).toEqual([4, 3]);
    const commit = (await listReleases()).at(-1)?.commit;
    await expect(rollBack('v1')).rejects.toMatchObject({
      code: 'conflict',
      message: `The image of v1 was deleted: the platform keeps those of an app's last 2 releases. Build it again instead: paas builds:create --commit ${commit}`,
    });
    expect((await rollBack('v3')).release).toMatchObject({ version: 5 });
    await collect();
    expect(await listStored()).toEqual([5, 4, 3]);
  });

  it('are not deleted while a rollback to them is being created', async () => {
    for (let round = 0; round < 3; round += 1) await release();
    const platform = core.context.platform;
    const images = {
      ...platform.images,
      // Between the first look at the release and the transaction.
      imageExists: async () => {
        await collect();
        return true;
      },
    };
    const releases = createReleases({ ...context, platform: { ...platform, images } });
    await expect(releases.rollBack(owner, app.id, 'v1')).rejects.toMatchObject({ code: 'conflict' });
    expect((await listReleases()).map(({ version }) => version)).toEqual([3, 2, 1]);
  });

  it('are kept as long as the release is current, however many have failed since', async () => {
    await release();
    core.script = { boot: () => ({ exitCode: 1, output: [] }) };
    for (let round = 0; round < 3; round += 1) await release();
    await collect();
    expect(await listStored()).toEqual([1]);
  });

  it('are kept while an instance runs them, and while their rollout waits', async () => {
    await release();
    await release();
    for (let round = 0; round < 3; round += 1) await build();
    const { platform } = context;
    const draining = {
      name: 'web.1',
      type: 'web',
      state: 'stopping',
      releaseVersion: 1,
      startedAt: new Date(),
      restarts: 0,
    } as const;
    const workloads = { ...platform.workloads, readInstances: async () => [draining] };
    await collect({ ...context, platform: { ...platform, workloads } });
    expect(await listStored()).toEqual([5, 4, 3, 2, 1]);
    await collect();
    expect(await listStored()).toEqual([5, 4, 3, 2]);
  });

  it('are kept while newer releases have the same', async () => {
    await release();
    for (const value of ['1', '2', '3']) {
      await core.services.config.changeConfig(owner, app.id, { VALUE: value });
      await deploy();
    }
    await collect();
    expect(await listStored()).toEqual([4, 3, 2, 1]);
  });

  it('are kept while a build runs, which may have an image and no release yet; one that no release has is deleted later', async () => {
    await release();
    const orphan = `fake://${app.id}@sha256:orphan`;
    const { images } = core.platform as unknown as { images: { addImage(appId: AppId, url: string): void } };
    const exists = () => core.platform.images.imageExists(orphan);
    let during: boolean | undefined;
    core.buildStep = async () => {
      images.addImage(app.id, orphan);
      await collect();
      during = await exists();
    };
    await release();
    expect(during).toBe(true);
    await collect();
    expect(await exists()).toBe(false);
    expect(await listStored()).toEqual([2, 1]);
  });

  it('are found again once the setting is lower', async () => {
    for (let round = 0; round < 2; round += 1) await release();
    await collect();
    const jobs: string[] = [];
    const enqueue = async (_: unknown, name: string, payload: unknown): Promise<void> =>
      void jobs.push(`${name} ${JSON.stringify(payload)}`);
    const lower: Context = { ...context, settings: { ...context.settings, keptReleases: 1 }, jobs: { enqueue } };
    await enqueueImageCollections(lower);
    expect(jobs).toContain(`collect-images {"appId":"${app.id}"}`);
    await collect(lower);
    expect(await listStored()).toEqual([2]);
  });

  it('are deleted by the worker after a release', async () => {
    await core.startWorker();
    try {
      for (let round = 0; round < 12; round += 1) {
        await app.commit({ version: `${round}` });
        await app.push('main');
      }
      await expect.poll(listStored).toEqual([12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
    } finally {
      await core.stopWorker();
    }
  });
});
