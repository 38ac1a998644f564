import { limits } from '#shared/limits.ts';
import { certificateName } from '#shared/platform/kubernetes/certificate-plan.ts';
import type { KubernetesPlatformSettings } from '#shared/platform/kubernetes/driver/kubernetes-platform.ts';
import { workerLabels } from '#shared/platform/kubernetes/names.ts';
import type { KubernetesSettings } from '#shared/settings/kubernetes-settings.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** A newer cluster does not change what it refuses. */
const podSecurityVersion = 'v1.36';
/** Of the buildpacks' images. */
const launcher = ['/cnb/lifecycle/launcher'];

/** What each port of the driver is told, from the settings of the platform. */
export function platformSettingsOf(
  settings: Pick<Settings, 'appsDomain' | 'appNetwork' | 'imageRegistries'>,
  kubernetes: KubernetesSettings,
): KubernetesPlatformSettings {
  const { gateway, images, runtimeClass, secretsRole, namespace } = kubernetes;
  const wildcardDomain = kubernetes.wildcard ? settings.appsDomain : undefined;
  const [registry = ''] = kubernetes.repository.split('/');
  const pullSecret = kubernetes.pullSecret === undefined ? undefined : { secret: kubernetes.pullSecret, host: registry };
  return {
    namespaces: {
      gatewayNamespace: gateway.namespace,
      controlPlane: { namespace, labels: workerLabels },
      secretsRole: secretsRole && { name: secretsRole.role, serviceAccount: { name: secretsRole.serviceAccount, namespace } },
      pullSecret,
      allowedNetworks: settings.appNetwork.allowed,
      podSecurityVersion,
      quota: kubernetes.tenantRoom,
    },
    builds: {
      repository: kubernetes.repository,
      insecureRegistry: settings.imageRegistries.insecure.includes(registry),
      registrySecret: kubernetes.registrySecret,
      builderImage: images.builder,
      runImage: images.run,
      toolsImage: images.tools,
      dockerfiles: kubernetes.dockerfiles ? { buildkitImage: images.buildkit, craneImage: images.crane } : undefined,
      ...kubernetes.build,
      runtimeClass,
    },
    addons: { kvstoreImage: images.kvstore, database: kubernetes.database },
    certificates: { gateway, issuer: kubernetes.issuer, wildcardDomain },
    workloads: {
      launcher,
      memory: `${limits.app.memoryBytes / 1024 / 1024}Mi`,
      runtimeClass,
      pullSecret,
      hasSessions: kubernetes.hasSessions,
      parentsOf: (host) => ({
        group: 'gateway.networking.k8s.io',
        kind: 'ListenerSet',
        name: certificateName(host, wildcardDomain),
        namespace: gateway.namespace,
      }),
    },
    loki: kubernetes.loki,
    prometheus: kubernetes.prometheus,
  };
}
