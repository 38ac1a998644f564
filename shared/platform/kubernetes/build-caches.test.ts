import { expect, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { planBuildCache } from './build-cache-plan.ts';
import { createKubernetesBuildCaches } from './build-caches.ts';
import { expectGolden } from './testing/expect-golden.ts';
import { createFakeCluster } from './testing/fake-cluster.ts';
import { sampleIds } from './testing/samples.ts';

describeBuildCaches('kubernetes, objects in memory', async () => createKubernetesBuildCaches(createFakeCluster()));

it('plans the claim as the golden file says', async () => {
  await expectGolden('build-cache', [planBuildCache(sampleIds.appId)]);
});

it('reports a claim that is Terminating as being deleted, and creates none beside it', async () => {
  const cluster = createFakeCluster();
  const caches = createKubernetesBuildCaches(cluster);
  const appId = newUuid<AppId>();
  await caches.ensureCache(appId);
  const finish = cluster.holdDeletions();
  expect(await caches.deleteCache(appId)).toBe(true);
  expect(await caches.deleteCache(appId)).toBe(false);
  expect(await caches.readCache(appId)).toEqual({ state: 'deleting' });
  expect(await caches.ensureCache(appId)).toEqual({ state: 'deleting' });
  finish();
  expect(await caches.ensureCache(appId)).toEqual({ state: 'created' });
});

it("deletes the app's builds that have ended, since their pods keep the claim, and none that runs", async () => {
  const cluster = createFakeCluster();
  const caches = createKubernetesBuildCaches(cluster);
  const appId = newUuid<AppId>();
  await caches.ensureCache(appId);
  const runOf = (name: string, succeeded: string) => ({
    apiVersion: 'tekton.dev/v1',
    kind: 'PipelineRun',
    metadata: { name, namespace: 'paas-build', labels: { 'app.kubernetes.io/managed-by': 'paas', 'app-id': appId } },
    status: { conditions: [{ type: 'Succeeded', status: succeeded }] },
  });
  for (const [name, succeeded] of [
    ['ended', 'True'],
    ['failed', 'False'],
    ['running', 'Unknown'],
  ] as const)
    await cluster.create(runOf(name, succeeded));
  await caches.deleteCache(appId);
  expect([...cluster.objects.keys()]).toEqual(['PipelineRun paas-build/running']);
});
