import { expect, inject, it } from 'vitest';
import { type AppId, newUuid } from '#shared/ids.ts';
import { describeBuildCaches } from '#shared/platform/contract/build-caches.ts';
import { createKubernetesBuildCaches } from '#shared/platform/kubernetes/build-caches.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';

async function open(): Promise<Cluster> {
  const cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paas-build' } });
  return cluster;
}

describeBuildCaches('kubernetes', async () => createKubernetesBuildCaches(await open()));

it('a claim that a pod uses is Terminating after its deletion, until the pod is gone', async () => {
  const cluster = await open();
  const caches = createKubernetesBuildCaches(cluster);
  const appId = newUuid<AppId>();
  await caches.ensureCache(appId);
  const pod = { kind: kinds.pod, name: `build-${appId}`, namespace: 'paas-build' };
  await cluster.create({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: pod.name, namespace: pod.namespace },
    spec: {
      // Only a pod with a node counts as one that uses its claims.
      nodeName: 'kwok-1',
      containers: [{ name: 'build', image: 'registry.local/build:1' }],
      volumes: [{ name: 'cache', persistentVolumeClaim: { claimName: `build-cache-${appId}` } }],
    },
  });
  expect(await caches.deleteCache(appId)).toBe(true);
  expect(await caches.deleteCache(appId)).toBe(false);
  expect(await caches.readCache(appId)).toEqual({ state: 'deleting' });
  expect(await caches.ensureCache(appId)).toEqual({ state: 'deleting' });
  await cluster.delete(pod);
  await expect.poll(() => caches.readCache(appId)).toBeUndefined();
  expect(await caches.ensureCache(appId)).toEqual({ state: 'created' });
});
