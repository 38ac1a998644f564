import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { createLog } from '#shared/log.ts';
import type { Drift } from '#shared/platform/drift.ts';
import { createKubernetesAppEnvironments } from '../app-environments.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { kinds } from '../cluster/kinds.ts';
import { createFakeCluster, type FakeCluster } from '../testing/fake-cluster.ts';
import { sampleIds, sampleNamespaceSettings } from '../testing/samples.ts';
import { describeTarget } from './drift-reports.ts';
import { createKubernetesDrift } from './kubernetes-drift.ts';

const app = { ...sampleIds, appName: 'shop', host: 'shop.apps.example.com' };
const namespace = `tenant-${app.tenantId}`;
const service = { kind: kinds.service, name: `app-${app.appId}`, namespace };

describe('drift', () => {
  /** What a person or a controller changes goes here. */
  let fake: FakeCluster;
  /** What the platform changes goes here. */
  let cluster: Cluster;
  let drift: Drift;
  let reported: string[];
  let over: AbortController;
  beforeEach(async () => {
    fake = createFakeCluster();
    ({ cluster, drift } = createKubernetesDrift({
      cluster: fake,
      clock: systemClock,
      log: createLog('silent', () => undefined),
    }));
    reported = [];
    over = new AbortController();
    await createKubernetesAppEnvironments(cluster, sampleNamespaceSettings).ensureApp(app);
    void (async () => {
      for await (const target of drift.watchDrift(over.signal)) reported.push(describeTarget(target));
    })();
    await drift.listAppIds(over.signal);
  });
  afterEach(() => over.abort());

  it('is reported once for what somebody deletes or changes, with whose it is', async () => {
    await fake.delete(service);
    await fake.patch(service, { metadata: { labels: { x: 'y' } } });
    await fake.patch({ kind: kinds.networkPolicy, name: 'default-deny', namespace }, { spec: { ingress: [{}] } });
    await expect.poll(() => reported.toSorted(), { timeout: 10_000 }).toEqual([`app ${app.appId}`, `tenant ${app.tenantId}`]);
  });

  it('is nothing that the platform itself writes or deletes, nor what controllers change by design', async () => {
    await cluster.patch(service, { spec: { ports: [{ port: 1 }] } });
    await cluster.patch({ kind: kinds.networkPolicy, name: 'allow-dns', namespace }, { spec: { egress: [] } });
    await fake.patch(service, { spec: { selector: { 'rollouts-pod-template-hash': 'abc' } }, status: { loadBalancer: {} } });
    await fake.patch(service, { metadata: { annotations: { 'rollout.argoproj.io/managed-by-rollouts': 'x' } } });
    await cluster.delete({ ...service, name: `${service.name}-canary` });
    // Everything above is settled once this is reported.
    await fake.delete({ kind: kinds.limitRange, name: 'tenant', namespace });
    await expect.poll(() => reported, { timeout: 10_000 }).toEqual([`tenant ${app.tenantId}`]);
  });

  it('knows the apps that have objects', async () => {
    expect(await drift.listAppIds(over.signal)).toEqual([app.appId]);
    over.abort();
    await expect(drift.listAppIds(over.signal)).rejects.toThrow();
  });
});
