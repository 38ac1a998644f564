import { expect, it } from 'vitest';
import { newUuid } from '#shared/ids.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import { createFakeRouter } from '#shared/routing/fake-router.ts';
import {
  makeDataDir,
  makeImage,
  openWorkloadFixture,
  removeDataDir,
  serverScript,
  specOf,
} from '#test/support/workloads/workload-fixture.ts';

it('a release that had traffic stays in the route for the assets of its pages, and leaves it before it ends', async () => {
  const dataDir = await makeDataDir();
  const router = createFakeRouter();
  const local = await openWorkloadFixture(dataDir, router, { timings: { assetSeconds: 0.5 } });
  try {
    const appId = newUuid<Parameters<typeof specOf>[0]>();
    const image = await makeImage(dataDir, 'server', { 'server.js': serverScript() });
    const processes = [{ type: 'web', command: '/opt/node server.js', quantity: 1 }];
    for (const version of [1, 2])
      for await (const _ of rollOut(local.rollouts, specOf(appId, version, image, { processes }))) continue;
    const weights = async () =>
      (await router.readRoute(appId))?.backends.map(({ releaseVersion, weight }) => [releaseVersion, weight]).toSorted();
    const running = async () =>
      (await local.workloads.readInstances(appId)).map(({ releaseVersion }) => releaseVersion).toSorted((a, b) => a - b);
    expect(await weights()).toEqual([
      [1, 0],
      [2, 100],
    ]);
    expect(await running()).toEqual([1, 2]);
    const [old] = (await router.readRoute(appId))?.backends.find(({ releaseVersion }) => releaseVersion === 1)?.instances ?? [];
    expect((await fetch(`http://127.0.0.1:${old?.port}/`)).status).toBe(200);
    await expect.poll(weights, { timeout: 10_000 }).toEqual([[2, 100]]);
    await expect.poll(running, { timeout: 10_000 }).toEqual([2]);
  } finally {
    await local.stopAll();
    await removeDataDir(dataDir);
  }
});
