import type { Clock } from '#shared/clock.ts';
import type { AppId } from '#shared/ids.ts';
import type { Log } from '#shared/log.ts';
import type { Platform } from '#shared/platform/platform.ts';
import type { TrafficMetrics } from '#shared/platform/traffic-metrics.ts';
import { type AddonSettings, createKubernetesAddons } from '../addons/addons.ts';
import { createKubernetesAppEnvironments } from '../app-environments.ts';
import { createKubernetesBuildCaches } from '../build-caches.ts';
import type { BuildSettings } from '../builds/build-settings.ts';
import { createKubernetesBuilds } from '../builds/builds.ts';
import type { CertificateSettings } from '../certificate-plan.ts';
import { createKubernetesCertificates } from '../certificates.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { createKubernetesDrift } from '../drift/kubernetes-drift.ts';
import { createKubernetesImages } from '../images/images.ts';
import { createRegistry } from '../images/registry.ts';
import { readRegistryCredentials } from '../images/registry-credentials.ts';
import { createAppLogs } from '../logs/app-logs.ts';
import { connectLoki, type LokiSettings } from '../logs/loki.ts';
import { createPodLogStore } from '../logs/pod-log-store.ts';
import { connectPrometheus } from '../metrics/prometheus.ts';
import { readRolloutTraffic } from '../metrics/rollout-traffic.ts';
import { createPrometheusMetrics } from '../metrics/series-metrics.ts';
import { appLabels, processLabels } from '../names.ts';
import type { TenantNamespaceSettings } from '../tenant-namespace-plan.ts';
import { listInstances } from '../workloads/instances.ts';
import { createWorkloadDrivers } from '../workloads/workload-drivers.ts';
import type { WorkloadSettings } from '../workloads/workload-plan.ts';

/** What the operator decides about each port. */
export interface KubernetesPlatformSettings {
  namespaces: TenantNamespaceSettings;
  builds: BuildSettings;
  addons: AddonSettings;
  certificates: CertificateSettings;
  workloads: WorkloadSettings;
  /** Undefined: logs are those that the kubelets keep. */
  loki: LokiSettings | undefined;
  /** Undefined: nothing is measured, and each step of a rollout passes by its time. */
  prometheus: { url: string; traffic: TrafficMetrics } | undefined;
}

/** Dependencies of {@link createKubernetesPlatform}. */
export interface KubernetesPlatformOptions {
  cluster: Cluster;
  settings: KubernetesPlatformSettings;
  clock: Pick<Clock, 'now'>;
  log: Pick<Log, 'info' | 'warn'>;
}

/** Runs everything on a cluster. Nothing is asked of it yet, and nothing has to be ended: what runs is the cluster's. */
export function createKubernetesPlatform({ cluster: api, settings, clock, log }: KubernetesPlatformOptions): Platform {
  // All ports use this one: what they write is no drift.
  const { cluster, drift } = createKubernetesDrift({ cluster: api, clock, log });
  const { repository, insecureRegistry, registrySecret } = settings.builds;
  const [host = ''] = repository.split('/');
  const readCredentials = async () =>
    registrySecret === undefined ? undefined : readRegistryCredentials(cluster, registrySecret, host);
  const images = createKubernetesImages(createRegistry({ host, insecure: insecureRegistry, readCredentials }), repository);
  const store = settings.loki === undefined ? createPodLogStore(cluster) : connectLoki(settings.loki);
  const logs = createAppLogs({ store, readInstanceNames });
  const measured = settings.prometheus && { ...settings.prometheus, server: connectPrometheus(settings.prometheus.url) };
  const { workloads, rollouts } = createWorkloadDrivers({
    cluster,
    settings: settings.workloads,
    logs,
    readTraffic: measured && ((appId) => readRolloutTraffic(measured.server, measured.traffic, appId)),
  });
  return {
    capabilities: { pipeline: 'tekton', sandbox: true },
    caches: createKubernetesBuildCaches(cluster),
    builds: createKubernetesBuilds({ cluster, settings: settings.builds, images }),
    images,
    appEnvironments: createKubernetesAppEnvironments(cluster, settings.namespaces),
    workloads,
    rollouts,
    logs,
    metrics: measured
      ? createPrometheusMetrics(measured.server, measured.traffic)
      : { kind: 'series', readSeries: async () => [] },
    certificates: createKubernetesCertificates(cluster, settings.certificates),
    addons: createKubernetesAddons(cluster, settings.addons),
    diskSpace: { readDiskSpace: async () => undefined },
    drift,
  };

  async function readInstanceNames(appId: AppId): Promise<ReadonlyMap<string, string>> {
    const pods = await cluster.list({ kind: kinds.pod, labels: { ...appLabels(appId), ...processLabels } });
    return new Map(listInstances(pods).map(({ podName, name }) => [podName, name]));
  }
}
