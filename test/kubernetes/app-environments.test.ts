import { beforeAll, describe, expect, inject, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { sampleNamespaceSettings } from '#shared/platform/kubernetes/testing/samples.ts';

describe("a tenant's namespace on a real cluster", () => {
  let cluster: Cluster;
  beforeAll(() => {
    cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
  });
  const podIn = (namespace: string, name: string, securityContext: object) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace },
    spec: { securityContext, containers: [{ name: 'web', image: 'registry.local/web:1' }] },
  });
  const allowed = { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: 'RuntimeDefault' } };

  it('is made once and again, refuses pods that may become root, and bounds what all pods use', async () => {
    const environments = createKubernetesAppEnvironments(cluster, {
      ...sampleNamespaceSettings,
      quota: { ...sampleNamespaceSettings.quota, pods: 1 },
    });
    const tenantId = newTenantId();
    const namespace = `tenant-${tenantId}`;
    const app = { appId: newUuid<AppId>(), appName: 'shop', tenantId, host: 'shop.apps.example.com' };
    for (let count = 0; count < 2; count += 1) await environments.ensureApp(app);

    await expect(cluster.create(podIn(namespace, 'root', {}))).rejects.toThrow(
      /violates the pod security level restricted:v1.36/,
    );
    const pod = podIn(namespace, 'first', allowed);
    const restricted = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } };
    const containers = pod.spec.containers.map((container) => ({ ...container, securityContext: restricted }));
    await expect
      .poll(() => cluster.create({ ...pod, spec: { ...pod.spec, containers } }).catch(() => 'the quota is not counted yet'))
      .toBe('created');
    const second = { ...pod, metadata: { name: 'second', namespace }, spec: { ...pod.spec, containers } };
    await expect(cluster.create(second)).rejects.toThrow(/the quota tenant allows pods=1, pods=1 is used, and this needs pods=1/);

    const policies = await cluster.list({ kind: kinds.networkPolicy, namespace });
    expect(policies.map(({ metadata }) => metadata.name).toSorted()).toEqual([
      'allow-app-database',
      'allow-app-kvstore',
      'allow-control-plane',
      'allow-dns',
      'allow-gateway',
      'allow-internet',
      'default-deny',
    ]);
    expect(await environments.deleteApp(app.appId)).toBe(true);
    await expect.poll(() => cluster.read({ kind: kinds.namespace, name: namespace })).toBeUndefined();
  });

  it('gets back what somebody has changed in it', async () => {
    const environments = createKubernetesAppEnvironments(cluster, sampleNamespaceSettings);
    const tenantId = newTenantId();
    const app = { appId: newUuid<AppId>(), appName: 'shop', tenantId, host: 'shop.apps.example.com' };
    await environments.ensureApp(app);
    const policy = { kind: kinds.networkPolicy, name: 'allow-internet', namespace: `tenant-${tenantId}` };
    const before = await cluster.read(policy);
    await cluster.patch(policy, { spec: { egress: [{}] } });
    await environments.ensureApp(app);
    expect((await cluster.read(policy))?.spec).toEqual(before?.spec);
    await environments.deleteApp(app.appId);
  });
});
