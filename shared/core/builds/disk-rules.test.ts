import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { runBuildJob } from '#shared/core/builds/build-job.ts';
import { judgeDiskSpace } from '#shared/core/builds/disk-rules.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';

const gibibyte = 1024 ** 3;
const facts = { totalBytes: 100 * gibibyte, reserveBytes: 2 * gibibyte, totalFiles: 1000, freeFiles: 500 };

describe('free disk space', () => {
  it.each([
    [{ freeBytes: 8 * gibibyte }, 'enough'],
    [{ freeBytes: 8 * gibibyte - 1 }, 'low'],
    [{ freeBytes: 4 * gibibyte - 1 }, 'full'],
    [{ freeBytes: 50 * gibibyte, freeFiles: 49 }, 'low'],
    [{ freeBytes: 50 * gibibyte, freeFiles: 19 }, 'full'],
    [{ freeBytes: 50 * gibibyte, freeFiles: 0, totalFiles: 0 }, 'enough'],
  ])('is judged by what must stay free, and by how many files may be created: %j is %s', (changed, state) => {
    expect(judgeDiskSpace({ ...facts, ...changed })).toBe(state);
  });

  it('is enough where builds have a disk of their own', () => {
    expect(judgeDiskSpace(undefined)).toBe('enough');
  });
});

describe('while the disk is almost full', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  beforeAll(async () => {
    core = await createCoreFixture();
    owner = await core.signUp();
  });
  afterAll(() => core.close());
  beforeEach(async () => {
    app = await core.createApp(owner);
    core.platform.diskSpace.setDiskSpace({ freeBytes: 3 * gibibyte });
  });

  const message = "The platform's disk is almost full, so no new builds start.";
  const makeRoom = () => core.platform.diskSpace.setDiskSpace({ freeBytes: 50 * gibibyte });
  const countBuilds = async () => (await core.services.builds.listBuilds(owner, app.id, { limit: 10 })).items.length;

  it('a push is refused with the reason and what to do, and is accepted once there is room', async () => {
    await app.commit();
    const refused = await app.push('-o', 'detach', 'main');
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(message);
    expect(refused.stderr).toContain('Ask the operator');
    expect(await countBuilds()).toBe(0);
    makeRoom();
    expect(await app.push('-o', 'detach', 'main')).toMatchObject({ code: 0 });
    expect(await countBuilds()).toBe(1);
  });

  it('a push that builds nothing is accepted', async () => {
    await app.commit();
    expect(await app.push('HEAD:refs/tags/v1')).toMatchObject({ code: 0 });
  });

  it('the API starts no build, and says why', async () => {
    const commit = await app.commit();
    await app.push('HEAD:refs/tags/v1');
    const start = () => core.services.builds.startBuild(owner, app.id, { commit });
    await expect(start()).rejects.toMatchObject({ code: 'conflict', message: expect.stringContaining(message) });
    expect(await countBuilds()).toBe(0);
    makeRoom();
    expect(await start()).toMatchObject({ status: 'queued' });
  });

  it('a build that waited in the queue fails with the reason', async () => {
    makeRoom();
    await app.commit();
    await app.push('-o', 'detach', 'main');
    core.platform.diskSpace.setDiskSpace({ freeBytes: 3 * gibibyte });
    const { id } = await core.latestBuild(app.id);
    await runBuildJob(core.context, id, new AbortController().signal);
    expect(await core.latestBuild(app.id)).toMatchObject({ status: 'failed', error: expect.stringContaining(message) });
  });
});
