import { describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createKubernetesAppEnvironments } from './app-environments.ts';
import { planAppServices } from './app-services-plan.ts';
import type { ClusterObject } from './cluster/cluster.ts';
import { planPullSecret } from './pull-secret-plan.ts';
import { planTenantNamespace } from './tenant-namespace-plan.ts';
import { expectGolden } from './testing/expect-golden.ts';
import { createFakeCluster } from './testing/fake-cluster.ts';
import { sampleIds, sampleNamespaceSettings, samplePullSecret } from './testing/samples.ts';

it("plans the tenant's namespace and the app's Services as the golden file says", async () => {
  const namespace = planTenantNamespace(sampleIds.tenantId, sampleNamespaceSettings);
  const pullSecret = planPullSecret(sampleIds.tenantId, samplePullSecret.host, { username: 'puller', password: 'secret' });
  await expectGolden('app-environment', [...namespace, pullSecret, ...planAppServices(sampleIds)]);
});

describe('the credentials of a private registry', () => {
  const config = (password: string) => ({
    auths: {
      'registry.example.com': { auth: Buffer.from(`puller:${password}`).toString('base64') },
      'other.example.com': { username: 'other', password: 'of another registry' },
    },
  });
  const source = (password: string): ClusterObject => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: samplePullSecret.secret, namespace: 'paas-build' },
    data: { '.dockerconfigjson': Buffer.from(JSON.stringify(config(password))).toString('base64') },
  });
  const app = { ...sampleIds, appName: 'shop', host: 'shop.example.com' };
  const settings = { ...sampleNamespaceSettings, pullSecret: samplePullSecret };

  it("are in the tenant's namespace, as they are now and without those of other registries, until its last app is deleted", async () => {
    const cluster = createFakeCluster();
    const environments = createKubernetesAppEnvironments(cluster, settings);
    const key = `Secret tenant-${app.tenantId}/registry-pull`;
    for (const password of ['first', 'second']) {
      await cluster.apply(source(password));
      await environments.ensureApp(app);
      const secret = cluster.objects.get(key);
      expect(secret).toMatchObject({
        type: 'kubernetes.io/dockerconfigjson',
        metadata: { labels: { 'tenant-id': app.tenantId } },
      });
      const { auths } = JSON.parse(Buffer.from(secret?.data?.['.dockerconfigjson'] ?? '', 'base64').toString()) as {
        auths: object;
      };
      expect(auths).toEqual({
        'registry.example.com': {
          username: 'puller',
          password,
          auth: Buffer.from(`puller:${password}`).toString('base64'),
        },
      });
    }
    await environments.deleteApp(app.appId);
    expect(cluster.objects.has(`Namespace tenant-${app.tenantId}`)).toBe(false);
  });

  it('that the operator has not given are named', async () => {
    const environments = createKubernetesAppEnvironments(createFakeCluster(), settings);
    await expect(environments.ensureApp(app)).rejects.toThrow(
      'The Secret registry-pull in the namespace paas-build does not exist.',
    );
  });
});

it('keeps the namespace until the last app of the tenant is deleted', async () => {
  const cluster = createFakeCluster();
  const environments = createKubernetesAppEnvironments(cluster, sampleNamespaceSettings);
  const tenantId = newTenantId();
  const [one, other] = [newUuid<AppId>(), newUuid<AppId>()];
  for (const appId of [one, other]) await environments.ensureApp({ appId, appName: 'shop', tenantId, host: 'shop.example.com' });
  expect(await environments.deleteApp(one)).toBe(true);
  expect(await environments.deleteApp(one)).toBe(false);
  expect(cluster.objects.has(`Namespace tenant-${tenantId}`)).toBe(true);
  expect(cluster.objects.has(`Service tenant-${tenantId}/app-${other}`)).toBe(true);
  expect(await environments.deleteApp(other)).toBe(true);
  expect(cluster.objects.has(`Namespace tenant-${tenantId}`)).toBe(false);
});

it('leaves Services alone that exist, since Argo Rollouts has changed their selectors', async () => {
  const cluster = createFakeCluster();
  const environments = createKubernetesAppEnvironments(cluster, sampleNamespaceSettings);
  const app = { ...sampleIds, appName: 'shop', host: 'shop.example.com' };
  await environments.ensureApp(app);
  const [service] = planAppServices(sampleIds);
  const changed = { ...service, spec: { selector: { 'rollouts-pod-template-hash': 'abc' } } } as NonNullable<typeof service>;
  await cluster.apply(changed);
  await environments.ensureApp(app);
  expect(cluster.objects.get(`Service tenant-abcd1234/app-${app.appId}`)?.spec).toMatchObject({
    selector: { 'rollouts-pod-template-hash': 'abc' },
  });
});
