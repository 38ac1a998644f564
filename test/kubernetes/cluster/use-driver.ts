import { expect } from 'vitest';
import { type AppId, newUuid, type ReleaseId } from '#shared/ids.ts';
import { buildNamespace } from '#shared/names.ts';
import { createKubernetesAddons } from '#shared/platform/kubernetes/addons/addons.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import { createKubernetesBuildCaches } from '#shared/platform/kubernetes/build-caches.ts';
import { createKubernetesCertificates } from '#shared/platform/kubernetes/certificates.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import type { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { awaitLeadership } from '#shared/platform/kubernetes/leadership/await-leadership.ts';
import {
  sampleAddonSettings,
  sampleCertificateSettings,
  sampleNamespaceSettings,
  sampleWorkloadSettings,
} from '#shared/platform/kubernetes/testing/samples.ts';
import { createWorkloadDrivers } from '#shared/platform/kubernetes/workloads/workload-drivers.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { TestCluster } from './start-test-cluster.ts';

/** For whom the driver is used, and where it runs. */
export interface DriverUse extends Pick<WorkloadSpec, 'appId' | 'tenantId'>, Pick<TestCluster, 'kubectl'> {
  /** Of the control plane. */
  namespace: string;
}

/** Calls each verb of each port of the driver, so that all requests to the API server that it ever makes are made. */
export async function useDriver(
  { cluster, drift }: ReturnType<typeof createKubernetesDrift>,
  { appId, tenantId, namespace, kubectl }: DriverUse,
  over: AbortController,
): Promise<void> {
  const leadership = await awaitLeadership({ cluster, namespace, name: 'worker', holder: 'test' }, over.signal);
  void (async () => {
    for await (const _ of drift.watchDrift(over.signal));
  })();
  await drift.listAppIds(over.signal);
  const secretsRole = { name: 'paas-tenant-secrets', serviceAccount: { name: 'paas-worker', namespace } };
  const environments = createKubernetesAppEnvironments(cluster, { ...sampleNamespaceSettings, secretsRole });
  const certificates = createKubernetesCertificates(cluster, sampleCertificateSettings);
  const addons = createKubernetesAddons(cluster, sampleAddonSettings);
  const caches = createKubernetesBuildCaches(cluster);
  const { workloads, rollouts } = createWorkloadDrivers({
    cluster,
    settings: sampleWorkloadSettings,
    logs: { appendPlatformLog: async () => undefined },
  });
  const host = 'shop.apps.example.com';
  await environments.ensureApp({ appId, appName: 'shop', tenantId, host });
  await certificates.ensureCertificate(host);
  await certificates.readCertificate(host);
  await caches.ensureCache(appId);
  // As a build that has ended, which must not hold the cache.
  await kubectl(
    ['apply', '-f', '-'],
    JSON.stringify({
      apiVersion: 'tekton.dev/v1',
      kind: 'PipelineRun',
      metadata: {
        name: `build-${appId}`,
        namespace: 'paas-build',
        labels: { 'app.kubernetes.io/managed-by': 'paas', 'app-id': appId },
      },
      spec: {},
    }),
  );
  await useBuilds(cluster, appId);
  for (const type of ['kvstore', 'database'] as const)
    await addons.ensureAddon({
      appId,
      tenantId,
      type,
      replicas: 1,
      memoryBytes: 2 ** 28,
      connections: 20,
      password: 'p'.repeat(20),
    });
  const spec = (releaseVersion: number): WorkloadSpec => ({
    appId,
    appName: 'shop',
    tenantId,
    releaseId: newUuid<ReleaseId>(),
    releaseVersion,
    imageUrl: `registry.local/shop:${releaseVersion}`,
    processes: [{ type: 'web', command: 'serve', quantity: 1 }],
    config: {},
    bindings: [],
    hosts: [host],
  });
  for await (const _ of rollOut(rollouts, spec(1)));
  for await (const _ of rollOut(rollouts, spec(2), { decide: () => ({ action: 'abort', cause: 'a test' }) }));
  await workloads.ensureWorkload(spec(3));
  await workloads.restartWorkload(appId);
  expect(await workloads.runOnce({ id: appId, spec: spec(3), command: 'true' }, () => undefined, over.signal)).toBe(0);
  const stopping = AbortSignal.timeout(1);
  await workloads.runOnce({ id: `${appId}-2`, spec: spec(3), command: 'true' }, () => undefined, stopping).catch(() => undefined);
  await workloads.deleteWorkload(appId);
  for (const type of ['kvstore', 'database'] as const) {
    await addons.readAddon(appId, type);
    await addons.stopAddon(appId, type);
    await addons.deleteAddon(appId, type);
  }
  await caches.deleteCache(appId);
  await certificates.deleteCertificate(host);
  expect(await environments.deleteApp(appId)).toBe(true);
  await leadership.release();
}

/** The calls of `shared/platform/kubernetes/builds/`, without a Tekton that runs anything. */
async function useBuilds(cluster: Cluster, appId: AppId): Promise<void> {
  const run = { kind: kinds.pipelineRun, name: `build-${appId}-1`, namespace: buildNamespace };
  const metadata = { name: run.name, namespace: buildNamespace };
  await cluster.create({ apiVersion: 'tekton.dev/v1', kind: 'PipelineRun', metadata, spec: { status: 'PipelineRunPending' } });
  await cluster.create({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'Opaque', data: {} });
  await cluster.read({ kind: kinds.secret, name: 'registry', namespace: buildNamespace });
  await cluster.patch(run, { spec: { status: 'Cancelled' } });
  await cluster.read({ ...run, kind: kinds.taskRun });
  await cluster.list({ kind: kinds.taskRun, namespace: buildNamespace });
  for (const kind of [kinds.pipelineRun, kinds.pod])
    for await (const _ of cluster.watch({ kind, namespace: buildNamespace }, AbortSignal.timeout(3000)));
  await cluster.delete(run);
}
