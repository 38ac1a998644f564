import { expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createKubernetesAppEnvironments } from './app-environments.ts';
import { planAppServices } from './app-services-plan.ts';
import { planTenantNamespace } from './tenant-namespace-plan.ts';
import { expectGolden } from './testing/expect-golden.ts';
import { createFakeCluster } from './testing/fake-cluster.ts';
import { sampleIds, sampleNamespaceSettings } from './testing/samples.ts';

it("plans the tenant's namespace and the app's Services as the golden file says", async () => {
  const namespace = planTenantNamespace(sampleIds.tenantId, sampleNamespaceSettings);
  await expectGolden('app-environment', [...namespace, ...planAppServices(sampleIds)]);
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
