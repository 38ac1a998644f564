import { describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import type { AddonSpec } from '#shared/platform/addons.ts';
import { expectGolden } from '../testing/expect-golden.ts';
import { createFakeCluster, type FakeCluster } from '../testing/fake-cluster.ts';
import { sampleAddonSettings, sampleIds } from '../testing/samples.ts';
import { createKubernetesAddons } from './addons.ts';
import { planDatabase } from './database-plan.ts';
import { planBindingSecret, planKvstore } from './kvstore-plan.ts';

const mebibyte = 1024 * 1024;
const sample: AddonSpec = {
  ...sampleIds,
  type: 'kvstore',
  replicas: 1,
  memoryBytes: 64 * mebibyte,
  connections: 50,
  password: 'Zq3vT8mK1pX7wB5n',
};
const specOf = (change: Partial<AddonSpec> = {}): AddonSpec => ({
  ...sample,
  appId: newUuid<AppId>(),
  tenantId: newTenantId(),
  ...change,
});
const decode = (text: string | undefined): string => Buffer.from(text ?? '', 'base64').toString();

it('plans a key-value store as the golden file says', async () => {
  const { surroundings, deployment } = planKvstore(sample, sampleAddonSettings.kvstoreImage, 'password0of0the0check');
  await expectGolden('kvstore', [...surroundings, deployment, planBindingSecret(sample, { KVSTORE_URL: 'Y29waWVk' })]);
});

it('plans a database as the golden file says', async () => {
  await expectGolden('database', planDatabase({ ...sample, type: 'database' }, sampleAddonSettings.database));
});

it('puts the password of a store into one secret, and into nothing else that pods or people without that right read', () => {
  const { surroundings, deployment } = planKvstore(sample, 'valkey', 'password0of0the0check');
  const readable = [...surroundings.filter(({ metadata }) => !metadata.name.endsWith('-auth')), deployment];
  for (const object of readable) {
    const values = Object.values(object.data ?? {}).map(decode);
    expect([JSON.stringify(object), ...values].join()).not.toContain(sample.password);
  }
});

describe('key-value stores', () => {
  const open = () => {
    const cluster = createFakeCluster();
    return { cluster, addons: createKubernetesAddons(cluster, sampleAddonSettings) };
  };
  const deploymentOf = (cluster: FakeCluster) => [...cluster.objects.values()].find(({ kind }) => kind === 'Deployment');

  it('have names of 53 characters, which start a DNS name', async () => {
    const { addons, cluster } = open();
    const spec = specOf();
    const { host } = await addons.ensureAddon(spec);
    const name = deploymentOf(cluster)?.metadata.name ?? '';
    expect(name).toBe(`kvstore-${spec.tenantId}-${spec.appId}`);
    expect(name).toHaveLength(53);
    expect(host).toBe(`${name}.tenant-${spec.tenantId}.svc.cluster.local`);
  });

  it('change nothing but the replicas of a Deployment that exists', async () => {
    const { addons, cluster } = open();
    const spec = specOf();
    await addons.ensureAddon(spec);
    const before = structuredClone(deploymentOf(cluster));
    await addons.ensureAddon({ ...spec, replicas: 3, memoryBytes: 256 * mebibyte, password: 'another0password' });
    const after = deploymentOf(cluster);
    expect(after?.spec).toEqual({ ...(before?.spec as object), replicas: 3 });
  });

  it('give the app exactly KVSTORE_URL, copied from the auth secret, also after the password has changed', async () => {
    const { addons, cluster } = open();
    const spec = specOf();
    for (const password of [spec.password, 'another0password']) {
      const { uri } = await addons.ensureAddon({ ...spec, password });
      const binding = cluster.objects.get(`Secret tenant-${spec.tenantId}/app-${spec.appId}-kvstore-url`);
      expect(Object.keys(binding?.data ?? {})).toEqual(['KVSTORE_URL']);
      expect(decode(binding?.data?.['KVSTORE_URL'])).toBe(uri);
      const auth = cluster.objects.get(`Secret tenant-${spec.tenantId}/kvstore-${spec.tenantId}-${spec.appId}-auth`);
      expect(Object.keys(auth?.data ?? {}).toSorted()).toEqual(['host', 'password', 'port', 'uri']);
      expect(binding?.data?.['KVSTORE_URL']).toBe(auth?.data?.['uri']);
    }
  });

  it('keep the password of their own check when the password changes: by that check the server reads the new one', async () => {
    const { addons, cluster } = open();
    const spec = specOf();
    const checkPassword = () => {
      const name = `Secret tenant-${spec.tenantId}/kvstore-${spec.tenantId}-${spec.appId}-config`;
      return cluster.objects.get(name)?.data?.['check-password'];
    };
    await addons.ensureAddon(spec);
    const before = checkPassword();
    await addons.ensureAddon({ ...spec, password: 'another0password' });
    expect(checkPassword()).toBe(before);
    await addons.ensureAddon(specOf());
    expect(decode(before)).toMatch(/^[0-9a-f]{32}$/);
  });

  it('report ready and desired servers, and none that the controller has not looked at', async () => {
    const { addons, cluster } = open();
    const spec = specOf({ replicas: 3 });
    expect(await addons.readAddon(spec.appId, 'kvstore')).toBeUndefined();
    await addons.ensureAddon(spec);
    expect(await addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 0, desired: 3 });
    const deployment = deploymentOf(cluster);
    if (deployment === undefined) throw new Error('There is no Deployment.');
    await cluster.apply({ ...deployment, status: { readyReplicas: 2, observedGeneration: 1 } });
    expect(await addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 2, desired: 3 });
  });

  it('lose their network policy when they are stopped, keep their pods, and get it back', async () => {
    const { addons, cluster } = open();
    const spec = specOf();
    await addons.ensureAddon(spec);
    const policy = `NetworkPolicy tenant-${spec.tenantId}/kvstore-${spec.tenantId}-${spec.appId}`;
    expect(cluster.objects.has(policy)).toBe(true);
    expect(await addons.stopAddon(spec.appId, 'kvstore')).toBe(true);
    expect(await addons.stopAddon(spec.appId, 'kvstore')).toBe(false);
    expect(cluster.objects.has(policy)).toBe(false);
    expect(await addons.readAddon(spec.appId, 'kvstore')).toEqual({ ready: 0, desired: 0 });
    expect(deploymentOf(cluster)?.spec).toMatchObject({ replicas: 1 });
    await addons.ensureAddon(spec);
    expect(cluster.objects.has(policy)).toBe(true);
    expect(await addons.readAddon(spec.appId, 'kvstore')).toMatchObject({ desired: 1 });
  });

  it("leave nothing when they are deleted, and other apps' stores alone", async () => {
    const { addons, cluster } = open();
    const other = specOf();
    await addons.ensureAddon(other);
    const kept = [...cluster.objects.keys()];
    const spec = specOf({ tenantId: other.tenantId });
    await addons.ensureAddon(spec);
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(true);
    expect(await addons.deleteAddon(spec.appId, 'kvstore')).toBe(false);
    expect([...cluster.objects.keys()]).toEqual(kept);
  });
});

describe('databases', () => {
  it('are refused with the command that installs the operator while it is missing', async () => {
    const cluster = createFakeCluster();
    cluster.missingKinds.add('Cluster');
    const addons = createKubernetesAddons(cluster, sampleAddonSettings);
    expect(await addons.findProblem('kvstore')).toBeUndefined();
    expect(await addons.findProblem('database')).toContain('helm install cnpg');
    await expect(addons.ensureAddon(specOf({ type: 'database' }))).rejects.toThrow('CloudNativePG');
    expect(await addons.deleteAddon(newUuid<AppId>(), 'database')).toBe(false);
  });

  it('are hibernated when they are stopped, and wake up again', async () => {
    const cluster = createFakeCluster();
    const addons = createKubernetesAddons(cluster, sampleAddonSettings);
    const spec = specOf({ type: 'database' });
    await addons.ensureAddon(spec);
    const reference = `Cluster tenant-${spec.tenantId}/database-${spec.appId}`;
    expect(await addons.stopAddon(spec.appId, 'database')).toBe(true);
    expect(await addons.stopAddon(spec.appId, 'database')).toBe(false);
    expect(cluster.objects.get(reference)?.metadata.annotations).toEqual({ 'cnpg.io/hibernation': 'on' });
    expect(await addons.readAddon(spec.appId, 'database')).toEqual({ ready: 0, desired: 0 });
    await addons.ensureAddon(spec);
    expect(cluster.objects.get(reference)?.metadata.annotations).toEqual({ 'cnpg.io/hibernation': 'off' });
    expect(await addons.deleteAddon(spec.appId, 'database')).toBe(true);
    expect(cluster.objects.size).toBe(0);
  });
});
