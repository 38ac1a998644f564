/**
 * What many apps cost the control plane on a real API server, with pods played by kwok: `npm run bench:kubernetes [-- --apps 2000 --tenants 5]`.
 * It prints how long it takes to know all objects, how much memory that needs, and how much is asked of the API server while nothing happens.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { sampleNamespaceSettings, sampleWorkloadSettings } from '#shared/platform/kubernetes/testing/samples.ts';
import { createWorkloadDrivers } from '#shared/platform/kubernetes/workloads/workload-drivers.ts';
import { buildClusterPrograms } from '../cluster/build-programs.ts';
import { startApiProxy } from '../cluster/start-api-proxy.ts';
import { startTestCluster } from '../cluster/start-test-cluster.ts';

const { values } = parseArgs({
  options: {
    apps: { type: 'string', default: '2000' },
    tenants: { type: 'string', default: '5' },
    parallel: { type: 'string', default: '16' },
    'idle-seconds': { type: 'string', default: '60' },
  },
});
const [apps, tenants, parallel, idleSeconds] = [values.apps, values.tenants, values.parallel, values['idle-seconds']].map(
  Number,
) as [number, number, number, number];
const mebibyte = 1024 * 1024;
const report = (line: string): void => console.log(line);
const secondsSince = (from: number): string => ((performance.now() - from) / 1000).toFixed(1);

const running = await startTestCluster(await buildClusterPrograms(report));
try {
  await bringUp();
  await measureSync();
} finally {
  await running.stop();
}

/** Each app as it is after its first deploy; nothing waits for its pods. */
async function bringUp(): Promise<void> {
  const cluster = connectCluster({ kubeconfig: running.kubeconfig });
  const quota = {
    pods: 100_000,
    cpu: '100000',
    memory: '100Ti',
    storage: '100Ti',
  } as unknown as typeof sampleNamespaceSettings.quota;
  const environments = createKubernetesAppEnvironments(cluster, { ...sampleNamespaceSettings, quota });
  const { rollouts } = createWorkloadDrivers({
    cluster,
    settings: sampleWorkloadSettings,
    logs: { appendPlatformLog: async () => undefined },
  });
  const tenantIds = Array.from({ length: tenants }, newTenantId);
  const from = performance.now();
  let next = 0;
  const bring = async (): Promise<void> => {
    for (let index = next++; index < apps; index = next++) {
      const tenantId = tenantIds[index % tenants] as (typeof tenantIds)[number];
      const [appId, appName] = [newUuid<AppId>(), `app-${index}`];
      const host = `${appName}.apps.example.com`;
      await environments.ensureApp({ appId, appName, tenantId, host });
      const release = { releaseId: newUuid<ReleaseId>(), releaseVersion: 1, imageUrl: `registry.local/${appName}:1` };
      const processes = [{ type: 'web', command: 'serve', quantity: 1 }];
      await rollouts.startRollout(
        { appId, appName, tenantId, ...release, processes, config: {}, bindings: [], hosts: [host] },
        [100],
      );
      if (index % 100 === 99) report(`${index + 1} apps after ${secondsSince(from)} s`);
    }
  };
  await Promise.all(Array.from({ length: parallel }, bring));
  report(`${apps} apps of ${tenants} tenants were created in ${secondsSince(from)} s`);
}

/** As a worker after its start. */
async function measureSync(): Promise<void> {
  const proxy = await startApiProxy(running.kubeconfig, 'scale');
  const over = new AbortController();
  try {
    globalThis.gc?.();
    const before = process.memoryUsage();
    const from = performance.now();
    const { drift } = createKubernetesDrift({
      cluster: connectCluster({ kubeconfig: proxy.kubeconfig }),
      clock: systemClock,
      log: createLog('warn', report),
    });
    void (async () => {
      for await (const _ of drift.watchDrift(over.signal));
    })();
    const known = await drift.listAppIds(over.signal);
    report(`${known.length} apps were known ${secondsSince(from)} s after the start, by ${proxy.requests.length} requests`);
    const peak = process.memoryUsage().rss - before.rss;
    const idleFrom = proxy.requests.length;
    await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000));
    globalThis.gc?.();
    const kept = process.memoryUsage().heapUsed - before.heapUsed;
    report(
      `memory: ${(kept / 1024 / apps).toFixed(1)} KiB of heap an app; ${Math.round(peak / mebibyte)} MiB more resident while listing`,
    );
    report(`idle: ${((proxy.requests.length - idleFrom) / idleSeconds).toFixed(2)} requests/s`);
  } finally {
    over.abort();
    await proxy.close();
  }
}
