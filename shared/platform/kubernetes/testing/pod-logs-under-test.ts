import type { AppId, TenantId } from '#shared/ids.ts';
import type { AppLogsHarness } from '#shared/platform/contract/app-logs.ts';
import type { Cluster, ClusterObject, PodContainer } from '../cluster/cluster.ts';
import { createAppLogs } from '../logs/app-logs.ts';
import { createPodLogStore } from '../logs/pod-log-store.ts';
import { appLabels, processLabels, tenantNamespace } from '../names.ts';
import { sampleIds } from './samples.ts';

/** What runs the pods of the tests. */
export interface PodsUnderTest {
  cluster: Cluster;
  /** Resolves when its container's log can be read. */
  start(pod: ClusterObject): Promise<void>;
  print(pod: PodContainer, lines: readonly string[]): Promise<void>;
  stop(): Promise<void>;
}

/** Logs of pods that print what the contract says: one pod for each instance of a release. */
export function openPodLogsUnderTest(
  { cluster, start, print, stop }: PodsUnderTest,
  tenantId: TenantId = sampleIds.tenantId,
): AppLogsHarness {
  const names = new Map<AppId, Map<string, string>>();
  const namespace = tenantNamespace(tenantId);
  return {
    logs: createAppLogs({
      store: createPodLogStore(cluster),
      readInstanceNames: async (appId) => names.get(appId) ?? new Map<string, string>(),
    }),
    // What pods print goes with them.
    deletesLater: true,
    stop,
    async print(appId, process, releaseVersion, lines) {
      const known = names.get(appId) ?? new Map<string, string>();
      names.set(appId, known);
      const name = `app-${appId}-${process.replace('.', '-')}-v${releaseVersion}`;
      if (!known.has(name)) {
        const labels = {
          ...appLabels(appId),
          ...processLabels,
          'process-type': process.split('.')[0] ?? '',
          'release-version': String(releaseVersion),
        };
        await start({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, labels }, spec: podSpec });
        known.set(name, process);
      }
      await print({ namespace, name, container: 'process' }, lines);
    },
  };
}

const podSpec = {
  securityContext: { runAsNonRoot: true, runAsUser: 1001, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    {
      name: 'process',
      image: 'registry.local/app',
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    },
  ],
};
