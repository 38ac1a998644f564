import { expect, it } from 'vitest';
import { expectGolden } from '../testing/expect-golden.ts';
import { createFakeCluster } from '../testing/fake-cluster.ts';
import { type BuildNamespaceSettings, planBuildLimits, planBuildNamespace } from './build-namespace-plan.ts';
import { prepareBuildNamespace } from './prepare-build-namespace.ts';

const settings: BuildNamespaceSettings = {
  reachedNamespaces: ['gateway', 'paas-system'],
  allowedNetworks: ['10.1.0.0/16'],
  dockerfiles: false,
};

it('plans the namespace of builds as the golden file says', async () => {
  await expectGolden('build-namespace', [planBuildNamespace(settings), ...planBuildLimits(settings)]);
});

it('creates the namespace where there is none, and limits it again and again', async () => {
  const cluster = createFakeCluster();
  for (const _ of [1, 2]) await prepareBuildNamespace(cluster, settings);
  expect([...cluster.objects.keys()].toSorted()).toEqual([
    'LimitRange paas-build/builds',
    'Namespace paas-build',
    'NetworkPolicy paas-build/allow-dns',
    'NetworkPolicy paas-build/allow-internet',
    'NetworkPolicy paas-build/allow-platform',
    'NetworkPolicy paas-build/default-deny',
    'ResourceQuota paas-build/builds',
  ]);
});

it('says which pod security level refuses Dockerfiles, and leaves it', async () => {
  const cluster = createFakeCluster();
  await cluster.create(planBuildNamespace({ dockerfiles: false }));
  await expect(prepareBuildNamespace(cluster, { ...settings, dockerfiles: true })).rejects.toThrow(
    'The namespace paas-build has the pod security level baseline, which refuses builds of Dockerfiles. Run `kubectl label namespace paas-build pod-security.kubernetes.io/enforce=privileged --overwrite`, or set PAAS_KUBERNETES_DOCKERFILES=false.',
  );
  await prepareBuildNamespace(cluster, settings);
  await cluster.apply(planBuildNamespace({ dockerfiles: true }));
  await prepareBuildNamespace(cluster, { ...settings, dockerfiles: true });
});
