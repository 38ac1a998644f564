/** What a Gateway's controller does with HTTPRoutes: our own gateway gets the routes that they describe. */
import type { AppId } from '#shared/ids.ts';
import { signalChanges } from '#shared/platform/kubernetes/cluster/change-signal.ts';
import type { Cluster, ClusterObject } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { managedLabels } from '#shared/platform/kubernetes/names.ts';
import type { AppRoute, Backend } from '#shared/routing/app-route.ts';
import type { Router } from '#shared/routing/router.ts';
import type { TestNode } from './test-node.ts';

interface RouteSpec {
  hostnames: readonly string[];
  rules: readonly { backendRefs: readonly { name: string; weight: number }[] }[];
}

const lookMilliseconds = 1000;

export function startRouteReader(cluster: Cluster, node: TestNode, router: Router): { stop(): Promise<void> } {
  const over = new AbortController();
  const kindsOfRoutes = [kinds.httpRoute, kinds.service, kinds.pod].map((kind) => ({ kind, labels: managedLabels }));
  const changes = signalChanges(cluster, kindsOfRoutes, over.signal);
  const applied = new Map<string, string>();

  async function readRoute({ metadata, spec }: ClusterObject): Promise<AppRoute> {
    const { hostnames, rules } = spec as RouteSpec;
    const { namespace = '', labels = {} } = metadata;
    const byRelease = new Map<number, Backend>();
    for (const { name, weight } of rules[0]?.backendRefs ?? []) {
      const ports = await node.portsOf(name, namespace);
      for (const pod of await cluster.list({ kind: kinds.pod, namespace, labels: { 'app-id': labels['app-id'] ?? '' } })) {
        const port = ports.get(pod.metadata.name);
        if (port === undefined) continue;
        const releaseVersion = Number(pod.metadata.labels?.['release-version']);
        const known = byRelease.get(releaseVersion) ?? { releaseVersion, weight: 0, instances: [] };
        const instances = known.instances.filter(({ port: other }) => other !== port);
        byRelease.set(releaseVersion, {
          ...known,
          weight: Math.max(known.weight, weight),
          instances: [...instances, { key: pod.metadata.uid ?? '', host: '127.0.0.1', port }],
        });
      }
    }
    const backends = [...byRelease.values()];
    const sum = backends.reduce((total, { weight }) => total + weight, 0);
    // While a Service has no pods, what leads to the other gets everything.
    const whole = sum === 100 ? backends : backends.map((backend, index) => ({ ...backend, weight: index === 0 ? 100 : 0 }));
    const appName = hostnames[0]?.split('.')[0] ?? '';
    return { appId: labels['app-id'] as AppId, appName, hosts: hostnames, backends: whole };
  }

  const reading = (async () => {
    while (!over.signal.aborted) {
      const routes = await cluster.list({ kind: kinds.httpRoute, labels: managedLabels });
      const there = new Set<string>();
      for (const object of routes) {
        const route = await readRoute(object);
        there.add(route.appId);
        const text = JSON.stringify(route);
        if (applied.get(route.appId) === text) continue;
        await router.applyRoute(route);
        applied.set(route.appId, text);
      }
      for (const appId of applied.keys()) {
        if (there.has(appId)) continue;
        await router.deleteRoute(appId as AppId);
        applied.delete(appId);
      }
      await changes.next(lookMilliseconds);
    }
  })().catch((error: unknown) => {
    if (!over.signal.aborted) process.stderr.write(`The reader of routes: ${String(error)}\n`);
  });
  return {
    async stop() {
      over.abort();
      await reading;
    },
  };
}
