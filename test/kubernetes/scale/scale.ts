/**
 * What many apps cost the control plane on a real API server, with pods played by kwok: `npm run bench:kubernetes [-- --apps 2000 --tenants 5]`.
 * It prints how long it takes to know all objects, how much memory that needs, how much is asked of the API server while nothing happens, and
 * what a new release of one app costs beside all others and beside ten.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { sampleNamespaceSettings, sampleWorkloadSettings } from '#shared/platform/kubernetes/testing/samples.ts';
import { createWorkloadDrivers } from '#shared/platform/kubernetes/workloads/workload-drivers.ts';
import { rollOut } from '#shared/platform/testing/roll-out.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import { buildClusterPrograms } from '../cluster/build-programs.ts';
import { type ApiProxy, startApiProxy } from '../cluster/start-api-proxy.ts';
import { startTestCluster } from '../cluster/start-test-cluster.ts';

const { values } = parseArgs({
  options: {
    apps: { type: 'string', default: '2000' },
    tenants: { type: 'string', default: '5' },
    parallel: { type: 'string', default: '16' },
    'idle-seconds': { type: 'string', default: '60' },
    'settle-seconds': { type: 'string', default: '900' },
    changes: { type: 'string', default: '5' },
  },
});
const count = (text: string): number => Number(text);
const [apps, tenants, parallel, changes] = [
  count(values.apps),
  count(values.tenants),
  count(values.parallel),
  count(values.changes),
];
const [idleSeconds, settleSeconds] = [count(values['idle-seconds']), count(values['settle-seconds'])];
const fewApps = 10;
const mebibyte = 1024 * 1024;
const report = (line: string): void => console.log(line);
const secondsSince = (from: number): string => ((performance.now() - from) / 1000).toFixed(1);

const running = await startTestCluster(await buildClusterPrograms(report));
const tenantIds = Array.from({ length: tenants }, newTenantId);
try {
  await bringUp(0, fewApps);
  await withWorker((worker) => measureChange(worker, fewApps));
  await bringUp(fewApps, apps);
  await untilAllRun();
  await withWorker(async (worker) => {
    await measureIdle(worker.proxy);
    await measureChange(worker, apps);
  });
} finally {
  await running.stop();
}

function describeApp(index: number): WorkloadSpec {
  const appName = `app-${index}`;
  return {
    appId: newUuid<AppId>(),
    appName,
    tenantId: tenantIds[index % tenants] as (typeof tenantIds)[number],
    releaseId: newUuid<ReleaseId>(),
    releaseVersion: 1,
    imageUrl: `registry.local/${appName}:1`,
    processes: [{ type: 'web', command: 'serve', quantity: 1 }],
    config: {},
    bindings: [],
    hosts: [`${appName}.apps.example.com`],
  };
}

function createDrivers(cluster: Cluster) {
  const quota = { pods: 100_000, cpu: '100000', memory: '100Ti', storage: '100Ti' };
  const logs = { appendPlatformLog: async () => undefined };
  return {
    environments: createKubernetesAppEnvironments(cluster, { ...sampleNamespaceSettings, quota }),
    rollouts: createWorkloadDrivers({ cluster, settings: sampleWorkloadSettings, logs }).rollouts,
  };
}

/** Each app as it is after its first deploy; nothing waits for its pods. */
async function bringUp(first: number, end: number): Promise<void> {
  const { environments, rollouts } = createDrivers(connectCluster({ kubeconfig: running.kubeconfig }));
  const from = performance.now();
  let next = first;
  const bring = async (): Promise<void> => {
    for (let index = next++; index < end; index = next++) {
      const spec = describeApp(index);
      await environments.ensureApp({ ...spec, host: spec.hosts[0] ?? '' });
      await rollouts.startRollout(spec, [100]);
      if (index % 100 === 99) report(`${index + 1} apps after ${secondsSince(from)} s`);
    }
  };
  await Promise.all(Array.from({ length: parallel }, bring));
  report(`apps ${first + 1} to ${end} of ${tenants} tenants were created in ${secondsSince(from)} s`);
}

/** The controllers have made all pods. */
async function untilAllRun(): Promise<void> {
  const cluster = connectCluster({ kubeconfig: running.kubeconfig });
  const from = performance.now();
  const isHealthy = ({ status }: { status?: unknown }): boolean =>
    (status as { phase?: string } | undefined)?.phase === 'Healthy';
  for (;;) {
    const healthy = (await cluster.list({ kind: kinds.rollout })).filter(isHealthy).length;
    const isOver = performance.now() - from > settleSeconds * 1000;
    if (healthy >= apps || isOver) {
      report(`${healthy} Rollouts were healthy ${secondsSince(from)} s later`);
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
  }
}

interface Worker {
  cluster: Cluster;
  proxy: ApiProxy;
}

/** As a worker after its start, which knows all objects. */
async function withWorker(use: (worker: Worker) => Promise<void>): Promise<void> {
  const proxy = await startApiProxy(running.kubeconfig, 'scale');
  const over = new AbortController();
  try {
    globalThis.gc?.();
    const before = process.memoryUsage();
    const from = performance.now();
    const { cluster, drift } = createKubernetesDrift({
      cluster: connectCluster({ kubeconfig: proxy.kubeconfig }),
      clock: systemClock,
      log: createLog('warn', report),
    });
    void (async () => {
      for await (const _ of drift.watchDrift(over.signal));
    })();
    const known = (await drift.listAppIds(over.signal)).length;
    report(`${known} apps were known ${secondsSince(from)} s after the start, by ${proxy.requests.length} requests`);
    const peak = process.memoryUsage().rss - before.rss;
    globalThis.gc?.();
    const kept = process.memoryUsage().heapUsed - before.heapUsed;
    report(
      `memory: ${(kept / 1024 / known).toFixed(1)} KiB of heap an app; ${Math.round(peak / mebibyte)} MiB more resident while listing`,
    );
    await use({ cluster, proxy });
  } finally {
    over.abort();
    await proxy.close();
  }
}

async function measureIdle(proxy: ApiProxy): Promise<void> {
  const from = proxy.requests.length;
  await new Promise((resolve) => setTimeout(resolve, idleSeconds * 1000));
  report(`idle: ${((proxy.requests.length - from) / idleSeconds).toFixed(2)} requests/s`);
}

/** New releases of one app, without pauses for traffic: what a push does after its build. */
async function measureChange({ cluster, proxy }: Worker, others: number): Promise<void> {
  const { environments, rollouts } = createDrivers(cluster);
  const first = { ...describeApp(0), appName: `changed-${others}`, hosts: [`changed-${others}.apps.example.com`] };
  await environments.ensureApp({ ...first, host: first.hosts[0] ?? '' });
  const figures: { seconds: number; requests: number }[] = [];
  for (let releaseVersion = 1; releaseVersion <= changes + 1; releaseVersion += 1) {
    const from = performance.now();
    const requests = proxy.requests.length;
    const release = { releaseId: newUuid<ReleaseId>(), releaseVersion, imageUrl: `registry.local/changed:${releaseVersion}` };
    for await (const { phase } of rollOut(rollouts, { ...first, ...release }, { weights: [100] }))
      if (phase === 'aborted') throw new Error(`Release v${releaseVersion} was aborted.`);
    // The first one has no other to replace.
    if (releaseVersion > 1)
      figures.push({ seconds: (performance.now() - from) / 1000, requests: proxy.requests.length - requests });
  }
  const median = (numbers: readonly number[]): number => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
  const seconds = figures.map((each) => each.seconds);
  report(
    `a new release beside ${others} apps: ${median(seconds).toFixed(1)} s (${seconds.map((each) => each.toFixed(1)).join(', ')}), ${median(figures.map((each) => each.requests))} requests`,
  );
}
