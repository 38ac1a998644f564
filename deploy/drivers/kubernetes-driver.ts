import { leadCluster } from '#deploy/drivers/lead-cluster.ts';
import type { PlatformDriver } from '#deploy/drivers/platform-driver.ts';
import { platformSettingsOf } from '#deploy/drivers/platform-settings.ts';
import { StartError } from '#deploy/host/start-error.ts';
import type { StartOptions } from '#deploy/parts/start-options.ts';
import { AppError } from '#shared/errors.ts';
import { prepareBuildNamespace } from '#shared/platform/kubernetes/builds/prepare-build-namespace.ts';
import { checkCluster, neededRights } from '#shared/platform/kubernetes/cluster/check-cluster.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { createKubernetesPlatform } from '#shared/platform/kubernetes/driver/kubernetes-platform.ts';
import type { KubernetesSettings } from '#shared/settings/kubernetes-settings.ts';
import type { Settings } from '#shared/settings/settings.ts';

/** The driver of a cluster. One process drives it, by a Lease; before it waits for that, it checks what the cluster has and allows. */
export function createKubernetesDriver(settings: Settings, kubernetes: KubernetesSettings): PlatformDriver {
  const { namespace, gateway, secretsRole } = kubernetes;
  const platformSettings = platformSettingsOf(settings, kubernetes);
  let connected: Cluster | undefined;
  const connect = (hostEnv: StartOptions['hostEnv']): Cluster => (connected ??= connectTo(kubernetes, hostEnv));
  return {
    hasGateways: false,
    async claim(lifetime, { hostEnv, log, report, stopping }) {
      const cluster = connect(hostEnv);
      await explain(async () => {
        const rights = neededRights({ platform: namespace, gateway: gateway.namespace, secretsRole: secretsRole?.role });
        const problems = await checkCluster(cluster, rights);
        if (problems.length > 0) throw new StartError(problems.join('\n !     '));
        await leadCluster(lifetime, { cluster, namespace, stopping, log, report });
        await prepareBuildNamespace(cluster, {
          reachedNamespaces: [gateway.namespace, namespace],
          allowedNetworks: settings.appNetwork.allowed,
          dockerfiles: kubernetes.dockerfiles,
        });
      });
      if (kubernetes.prometheus === undefined)
        log.warn('PAAS_PROMETHEUS_URL is not set: apps have no metrics, and rollouts do not see their traffic.');
    },
    async create(_, { hostEnv, clock, log }) {
      return createKubernetesPlatform({ cluster: connect(hostEnv), settings: platformSettings, clock, log });
    },
  };
}

function connectTo({ kubeconfig }: KubernetesSettings, hostEnv: StartOptions['hostEnv']): Cluster {
  if (kubeconfig === undefined && hostEnv['KUBERNETES_SERVICE_HOST'] === undefined)
    throw new StartError('PAAS_KUBECONFIG: must name a kubeconfig, since this process does not run in a pod.');
  try {
    return connectCluster({ kubeconfig });
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const what = kubeconfig === undefined ? 'the service account of this pod' : kubeconfig;
    throw new StartError(`PAAS_KUBECONFIG: ${what} cannot be used (${said}).`, { cause: error });
  }
}

/** What the cluster refuses is the operator's to mend. */
async function explain(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (error instanceof AppError) throw new StartError(error.message, { cause: error });
    throw error;
  }
}
