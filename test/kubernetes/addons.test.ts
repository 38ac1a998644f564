import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import type { AddonSpec, Addons } from '#shared/platform/addons.ts';
import { createKubernetesAddons } from '#shared/platform/kubernetes/addons/addons.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { appLabels } from '#shared/platform/kubernetes/names.ts';
import { sampleAddonSettings, sampleNamespaceSettings } from '#shared/platform/kubernetes/testing/samples.ts';

const mebibyte = 1024 * 1024;

describe('add-ons on a real cluster', () => {
  let cluster: Cluster;
  let addons: Addons;
  const tenantId = newTenantId();
  const namespace = `tenant-${tenantId}`;
  beforeAll(async () => {
    cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
    addons = createKubernetesAddons(cluster, sampleAddonSettings);
    const app = { appId: newUuid<AppId>(), appName: 'shop', tenantId, host: 'shop.apps.example.com' };
    await createKubernetesAppEnvironments(cluster, sampleNamespaceSettings).ensureApp(app);
  });
  afterAll(async () => void (await cluster.delete({ kind: kinds.namespace, name: namespace })));

  const specOf = (change: Partial<AddonSpec> = {}): AddonSpec => ({
    appId: newUuid<AppId>(),
    tenantId,
    type: 'kvstore',
    replicas: 1,
    memoryBytes: 64 * mebibyte,
    connections: 50,
    password: crypto.getRandomValues(new Uint8Array(16)).toHex(),
    ...change,
  });
  const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString();

  it('a key-value store becomes ready in a namespace of level restricted, and gives the app its address', async () => {
    const spec = specOf();
    const name = `kvstore-${tenantId}-${spec.appId}`;
    const credentials = await addons.ensureAddon(spec);
    await expect.poll(() => addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 1, desired: 1 });
    expect(credentials.uri).toBe(`redis://:${spec.password}@${name}.${namespace}.svc.cluster.local:6379`);
    const binding = await cluster.read({ kind: kinds.secret, name: `app-${spec.appId}-kvstore-url`, namespace });
    expect(Object.keys(binding?.data ?? {})).toEqual(['KVSTORE_URL']);
    expect(decode(binding?.data?.['KVSTORE_URL'])).toBe(credentials.uri);
    const auth = await cluster.read({ kind: kinds.secret, name: `${name}-auth`, namespace });
    expect(Object.fromEntries(Object.entries(auth?.data ?? {}).map(([key, value]) => [key, decode(value)]))).toEqual({
      uri: credentials.uri,
      host: credentials.host,
      port: '6379',
      password: spec.password,
    });
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(true);
  });

  it('a new plan and a new password keep the pod, whose memory holds the data; more replicas are added to it', async () => {
    const spec = specOf();
    await addons.ensureAddon(spec);
    await expect.poll(() => addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 1, desired: 1 });
    const pods = async () => cluster.list({ kind: kinds.pod, namespace, labels: appLabels(spec.appId) });
    const [before] = await pods();
    await addons.ensureAddon({ ...spec, replicas: 3, memoryBytes: 256 * mebibyte, password: 'another0password' });
    await expect.poll(() => addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 3, desired: 3 });
    expect((await pods()).map(({ metadata }) => metadata.uid)).toContain(before?.metadata.uid);
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(true);
  });

  it('a store that is stopped keeps its pod and loses its policy; deleted, nothing of it is left', async () => {
    const spec = specOf();
    await addons.ensureAddon(spec);
    await expect.poll(() => addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 1, desired: 1 });
    expect(await addons.stopAddon(spec.appId, 'kvstore')).toBe(true);
    expect(await addons.stopAddon(spec.appId, 'kvstore')).toBe(false);
    expect(await addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 0, desired: 0 });
    expect(await cluster.list({ kind: kinds.pod, namespace, labels: appLabels(spec.appId) })).toHaveLength(1);
    expect(await cluster.list({ kind: kinds.networkPolicy, namespace, labels: appLabels(spec.appId) })).toEqual([]);
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(true);
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(false);
    const left = async () => {
      const all = Object.values(kinds).filter(({ namespaced }) => namespaced);
      const found = await Promise.all(all.map((kind) => cluster.list({ kind, namespace, labels: appLabels(spec.appId) })));
      return found.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    };
    await expect.poll(left).toEqual([]);
  });

  it("a database follows the Cluster's status, which the operator writes", async () => {
    const spec = specOf({ type: 'database' });
    const { uri } = await addons.ensureAddon(spec);
    const reference = { kind: kinds.postgresCluster, name: `database-${spec.appId}`, namespace };
    expect(uri).toBe(`postgresql://app:${spec.password}@${reference.name}-rw.${namespace}.svc.cluster.local:5432/app`);
    expect(await addons.readAddon(spec.appId, 'database')).toEqual({ ready: 0, desired: 1 });
    await cluster.patch(reference, { status: { readyInstances: 1 } }, 'status');
    expect(await addons.readAddon(spec.appId, 'database')).toEqual({ ready: 1, desired: 1 });
    expect(await addons.stopAddon(spec.appId, 'database')).toBe(true);
    expect(await addons.readAddon(spec.appId, 'database')).toEqual({ ready: 0, desired: 0 });
    await addons.ensureAddon(spec);
    expect(await addons.readAddon(spec.appId, 'database')).toEqual({ ready: 1, desired: 1 });
    expect(await addons.deleteAddon(spec.appId, 'database')).toBe(true);
    expect(await addons.readAddon(spec.appId, 'database')).toBeUndefined();
  });
});
