import type { AppId, TenantId } from '#shared/ids.ts';
import type { AddonSettings } from '../addons/addons.ts';
import type { BuildSettings } from '../builds/build-settings.ts';
import type { CertificateSettings } from '../certificate-plan.ts';
import { workerLabels } from '../names.ts';
import type { PullSettings } from '../pull-secret-plan.ts';
import type { TenantNamespaceSettings } from '../tenant-namespace-plan.ts';
import type { WorkloadSettings } from '../workloads/workload-plan.ts';

/** Fixed, for golden files. */
export const sampleIds = {
  appId: '4f6f1b7e-5d0c-4a43-9c8e-0d3a1f5b2c77' as AppId,
  tenantId: 'abcd1234' as TenantId,
};

export const samplePullSecret: PullSettings = { secret: 'registry-pull', host: 'registry.example.com' };

export const sampleNamespaceSettings: TenantNamespaceSettings = {
  gatewayNamespace: 'gateway',
  controlPlane: { namespace: 'paas', labels: workerLabels },
  allowedNetworks: [],
  podSecurityVersion: 'v1.36',
  quota: { pods: 100, cpu: '32', memory: '64Gi', storage: '100Gi' },
};

export const sampleAddonSettings: AddonSettings = {
  kvstoreImage: 'docker.io/valkey/valkey:9.0',
  database: { operatorNamespace: 'cnpg-system', storage: '5Gi' },
};

export const sampleCertificateSettings: CertificateSettings = {
  gateway: { name: 'paas', namespace: 'gateway' },
  issuer: { kind: 'ClusterIssuer', name: 'authority' },
  wildcardDomain: undefined,
};

export const sampleWorkloadSettings: WorkloadSettings = {
  launcher: ['/cnb/lifecycle/launcher'],
  memory: '256Mi',
  runtimeClass: undefined,
  hasSessions: false,
  parentsOf: () => ({ group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'paas', namespace: 'gateway' }),
};

export const sampleBuildSettings: BuildSettings = {
  repository: 'registry.example.com/paas',
  insecureRegistry: false,
  registrySecret: 'registry',
  builderImage: 'docker.io/paketobuildpacks/builder-jammy-base:0.4.500',
  runImage: undefined,
  toolsImage: 'docker.io/curlimages/curl:8.17.0',
  dockerfiles: {
    buildkitImage: 'docker.io/moby/buildkit:v0.26.0-rootless',
    craneImage: 'gcr.io/go-containerregistry/crane/debug:v0.20.7',
  },
  memory: '2Gi',
  cpu: '500m',
  runtimeClass: undefined,
};
