/**
 * What the platform keeps of more apps than a test cluster holds: `node --expose-gc test/kubernetes/scale/in-memory.ts [--apps 10000]`. Their
 * objects are in memory; the figures are those of the index of drift alone.
 */
import { parseArgs } from 'node:util';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { planAppServices } from '#shared/platform/kubernetes/app-services-plan.ts';
import { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { planTenantNamespace } from '#shared/platform/kubernetes/tenant-namespace-plan.ts';
import { createFakeCluster } from '#shared/platform/kubernetes/testing/fake-cluster.ts';
import { sampleNamespaceSettings, sampleWorkloadSettings } from '#shared/platform/kubernetes/testing/samples.ts';
import {
  planDeployment,
  planReleaseSecrets,
  planRollout,
  planRoute,
} from '#shared/platform/kubernetes/workloads/workload-plan.ts';

const { values } = parseArgs({
  options: { apps: { type: 'string', default: '10000' }, tenants: { type: 'string', default: '25' } },
});
const apps = Number(values.apps);
const tenantIds = Array.from({ length: Number(values.tenants) }, newTenantId);
const cluster = createFakeCluster();
for (const tenantId of tenantIds)
  for (const object of planTenantNamespace(tenantId, sampleNamespaceSettings)) await cluster.create(object);
for (let index = 0; index < apps; index += 1) {
  const web = { type: 'web', command: 'serve', quantity: 1 };
  const spec = {
    appId: newUuid<AppId>(),
    appName: `app-${index}`,
    tenantId: tenantIds[index % tenantIds.length] as (typeof tenantIds)[number],
    releaseId: newUuid<ReleaseId>(),
    releaseVersion: 1,
    imageUrl: `registry.local/app-${index}:1`,
    processes: [web],
    config: {},
    bindings: [],
    hosts: [`app-${index}.apps.example.com`],
  };
  const deployment = planDeployment(spec, web, sampleWorkloadSettings);
  const traffic = [planRollout(spec, 1, [100]), planRoute(spec, sampleWorkloadSettings)];
  for (const object of [...planAppServices(spec), ...planReleaseSecrets(spec), deployment, ...traffic])
    await cluster.create(object);
}

globalThis.gc?.();
const before = process.memoryUsage().heapUsed;
const from = performance.now();
const over = new AbortController();
const { drift } = createKubernetesDrift({ cluster, clock: systemClock, log: createLog('warn', console.log) });
const watching = (async () => {
  for await (const _ of drift.watchDrift(over.signal));
})();
const known = (await drift.listAppIds(over.signal)).length;
const seconds = (performance.now() - from) / 1000;
globalThis.gc?.();
const kept = process.memoryUsage().heapUsed - before;
console.log(
  `${cluster.objects.size} objects of ${known} apps: known after ${seconds.toFixed(1)} s, ${(kept / 1024 / known).toFixed(1)} KiB an app`,
);
over.abort();
await watching;
