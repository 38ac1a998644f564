import { describe, expect, it } from 'vitest';
import { type AppId, newTenantId, newUuid, type ReleaseId } from '#shared/ids.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';
import type { Cluster } from '../cluster/cluster.ts';
import { createFakeCluster } from '../testing/fake-cluster.ts';
import { sampleWorkloadSettings } from '../testing/samples.ts';
import { readAppState } from './app-state.ts';
import { createWorkloadDrivers } from './workload-drivers.ts';

const logs = { appendPlatformLog: async () => undefined };
const open = (cluster: Cluster) => createWorkloadDrivers({ cluster, settings: sampleWorkloadSettings, logs }).rollouts;
const weights = [10, 25, 50, 100];
const specOf = (change: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
  appId: newUuid<AppId>(),
  appName: 'shop',
  tenantId: newTenantId(),
  releaseId: newUuid<ReleaseId>(),
  releaseVersion: 1,
  imageUrl: 'registry.local/shop:1',
  processes: [{ type: 'web', command: 'serve', quantity: 1 }],
  config: {},
  bindings: [],
  hosts: ['shop.apps.example.com'],
  ...change,
});

describe('rollouts of several control planes', () => {
  it.each(['Secret', 'ConfigMap', 'HTTPRoute', 'Deployment', 'Rollout'])(
    'are begun by the next call when the first one has ended before its %s',
    async (kind) => {
      const cluster = createFakeCluster();
      const spec = specOf();
      const fail = <Verb extends 'apply' | 'create'>(verb: Verb): Cluster[Verb] =>
        (async (object) => {
          if (object.kind === kind) throw new Error('The process has ended.');
          return cluster[verb](object);
        }) as Cluster[Verb];
      const dying = open({ ...cluster, apply: fail('apply'), create: fail('create') });
      await expect(dying.startRollout(spec, weights)).rejects.toThrow('The process has ended.');
      await open(cluster).startRollout(spec, weights);
      const names = [...cluster.objects.keys()].map((key) => key.split(' ')[0]);
      for (const expected of ['Secret', 'ConfigMap', 'HTTPRoute', 'Deployment', 'Rollout']) expect(names).toContain(expected);
      expect((await readAppState(cluster, spec.appId))?.state.candidate).toMatchObject({ releaseId: spec.releaseId });
    },
  );

  it('obey the first of several orders, and none for another release', async () => {
    const cluster = createFakeCluster();
    const spec = specOf();
    await open(cluster).startRollout(spec, weights);
    await open(cluster).abortRollout(spec.appId, newUuid<ReleaseId>(), 'not meant');
    expect((await readAppState(cluster, spec.appId))?.state.candidate?.order).toBeUndefined();
    await Promise.all([
      open(cluster).promoteRollout(spec.appId, spec.releaseId),
      open(cluster).abortRollout(spec.appId, spec.releaseId, 'too many errors'),
    ]);
    const first = (await readAppState(cluster, spec.appId))?.state.candidate?.order;
    expect(first).toBeDefined();
    await open(cluster).promoteRollout(spec.appId, spec.releaseId);
    await open(cluster).abortRollout(spec.appId, spec.releaseId, 'late');
    expect((await readAppState(cluster, spec.appId))?.state.candidate?.order).toEqual(first);
  });

  it('start one candidate when two processes start the same release at the same time', async () => {
    const cluster = createFakeCluster();
    const spec = specOf();
    await Promise.all([open(cluster).startRollout(spec, weights), open(cluster).startRollout(spec, weights)]);
    expect((await readAppState(cluster, spec.appId))?.state.candidate).toMatchObject({ releaseId: spec.releaseId });
  });
});

it('a watch of an app that has never run ends at once', async () => {
  for await (const facts of open(createFakeCluster()).watchRollout(newUuid<AppId>(), new AbortController().signal))
    expect.fail(JSON.stringify(facts));
});
