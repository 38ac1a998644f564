import { inject } from 'vitest';
import { newTenantId } from '#shared/ids.ts';
import { describeAppLogs } from '#shared/platform/contract/app-logs.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { openPodLogsUnderTest } from '#shared/platform/kubernetes/testing/pod-logs-under-test.ts';
import { runChecked } from '#test/support/run-program.ts';
import { openPodLogs } from './cluster/pod-logs.ts';

/** The API server asks the kubelet, which kwok plays: it reads the lines, with their times, as a container runtime writes them. */
describeAppLogs('kubernetes, with the logs of pods on a real API server', async () => {
  const cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
  const kubectl = async (args: readonly string[], input?: string): Promise<string> => {
    const options = input === undefined ? {} : { input };
    const all = ['kubectl', '--kubeconfig', inject('kubeconfig'), ...args];
    return (await runChecked(inject('clusterPrograms').cluster, all, options)).stdout;
  };
  const podLogs = await openPodLogs(kubectl);
  const tenantId = newTenantId();
  const namespace = `tenant-${tenantId}`;
  for (const name of [namespace, 'paas-build']) await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  return openPodLogsUnderTest(
    {
      cluster,
      async start(pod) {
        await podLogs.prepare(pod);
        await cluster.create(pod);
        const { name } = pod.metadata;
        const isReadable = (): Promise<string | undefined> =>
          cluster.readPodLog({ namespace, name, container: 'process' }, 1).catch(() => undefined);
        while ((await isReadable()) === undefined) await new Promise((resolve) => setTimeout(resolve, 100));
      },
      async print(pod, lines) {
        for (const line of lines) await podLogs.print(pod, line);
      },
      async stop() {
        await cluster.delete({ kind: kinds.namespace, name: namespace });
        await podLogs.stop();
      },
    },
    tenantId,
  );
});
