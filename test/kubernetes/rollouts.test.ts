import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import { type AppId, newTenantId, newUuid, type ReleaseId, type TenantId } from '#shared/ids.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { appLabels } from '#shared/platform/kubernetes/names.ts';
import { sampleNamespaceSettings, sampleWorkloadSettings } from '#shared/platform/kubernetes/testing/samples.ts';
import { createWorkloadDrivers, type WorkloadDrivers } from '#shared/platform/kubernetes/workloads/workload-drivers.ts';
import { passEachStep, type RollOutOptions, rollOut } from '#shared/platform/testing/roll-out.ts';
import type { WorkloadSpec } from '#shared/platform/workloads.ts';

describe('rollouts by the controller of Argo Rollouts', () => {
  let cluster: Cluster;
  let drivers: WorkloadDrivers;
  let appId: AppId;
  const tenantId: TenantId = newTenantId();
  const namespace = `tenant-${tenantId}`;
  beforeAll(() => {
    cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
    const logs = { appendPlatformLog: async () => undefined };
    drivers = createWorkloadDrivers({ cluster, settings: sampleWorkloadSettings, logs });
  });
  const environments = () => createKubernetesAppEnvironments(cluster, sampleNamespaceSettings);
  beforeEach(async () => {
    appId = newUuid<AppId>();
    await environments().ensureApp({ appId, appName: 'shop', tenantId, host: 'shop.apps.example.com' });
  });
  afterEach(async () => void (await drivers.workloads.deleteWorkload(appId)));
  afterAll(async () => void (await cluster.delete({ kind: kinds.namespace, name: namespace })));

  const specOf = (releaseVersion: number, change: Partial<WorkloadSpec> = {}): WorkloadSpec => ({
    appId,
    appName: 'shop',
    tenantId,
    releaseId: newUuid<ReleaseId>(),
    releaseVersion,
    imageUrl: `registry.local/shop@sha256:${String(releaseVersion).repeat(64).slice(0, 64)}`,
    processes: [{ type: 'web', command: 'serve', quantity: 2 }],
    config: { GREETING: `release ${releaseVersion}` },
    bindings: [],
    hosts: ['shop.apps.example.com'],
    ...change,
  });
  async function weights(): Promise<Record<string, number>> {
    const route = await cluster.read({ kind: kinds.httpRoute, name: `app-${appId}`, namespace });
    const { rules } = (route?.spec ?? { rules: [] }) as { rules: { backendRefs: { name: string; weight: number }[] }[] };
    return Object.fromEntries(
      (rules[0]?.backendRefs ?? []).map(({ name, weight }) => [name.endsWith('-canary') ? 'canary' : 'stable', weight]),
    );
  }
  async function bringLive(
    spec: WorkloadSpec,
    options?: RollOutOptions,
  ): Promise<{ phases: string[]; steps: [number, unknown][] }> {
    const phases: string[] = [];
    const steps: [number, unknown][] = [];
    for await (const { phase, weight } of rollOut(drivers.rollouts, spec, options)) {
      phases.push(phase);
      if (phase === 'serving' && steps.at(-1)?.[0] !== weight) steps.push([weight, await weights()]);
    }
    return { phases, steps };
  }
  const images = async (): Promise<(string | undefined)[]> => {
    const pods = await cluster.list({ kind: kinds.pod, namespace, labels: appLabels(appId) });
    return pods
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .map(({ spec }) => (spec as { containers: { image: string }[] }).containers[0]?.image);
  };
  const names = async (): Promise<string[]> =>
    (await drivers.workloads.readInstances(appId))
      .filter(({ state }) => state !== 'stopping')
      .map(({ name, releaseVersion }) => `${name} v${releaseVersion}`);

  it('brings the first release up without steps, and walks the second one through 10, 25, 50 and 100', async () => {
    const first = specOf(1);
    const { phases } = await bringLive(first);
    expect(phases.at(-1)).toBe('live');
    expect(await weights()).toEqual({ stable: 100, canary: 0 });
    expect(await names()).toEqual(['web.1 v1', 'web.2 v1']);

    const second = specOf(2);
    const { phases: next, steps } = await bringLive(second);
    expect(next.at(-1)).toBe('live');
    expect(steps.slice(0, 4)).toEqual([
      [10, { stable: 90, canary: 10 }],
      [25, { stable: 75, canary: 25 }],
      [50, { stable: 50, canary: 50 }],
      [100, { stable: 0, canary: 100 }],
    ]);
    await expect.poll(images).toEqual([second.imageUrl, second.imageUrl]);
    await expect.poll(weights).toEqual({ stable: 100, canary: 0 });
  });

  it('gives traffic back at an abort, and the next change of variables does not ship the aborted image', async () => {
    const first = specOf(1);
    await bringLive(first);
    const second = specOf(2);
    const { phases } = await bringLive(second, {
      decide: (facts) => (facts.weight === 25 ? { action: 'abort', cause: 'too many errors' } : passEachStep(facts)),
    });
    expect(phases.at(-1)).toBe('aborted');
    expect(await weights()).toEqual({ stable: 100, canary: 0 });
    expect(await images()).toEqual([first.imageUrl, first.imageUrl]);
    const deployment = await cluster.read({ kind: kinds.deployment, name: `app-${appId}`, namespace });
    expect(JSON.stringify(deployment?.spec)).not.toContain(second.imageUrl);

    const third = specOf(3, { imageUrl: first.imageUrl });
    expect((await bringLive(third)).phases.at(-1)).toBe('live');
    expect(new Set(await images())).toEqual(new Set([first.imageUrl]));
  });

  it('scales without a canary and without new pods, and restarts without one', async () => {
    const spec = specOf(1);
    await bringLive(spec);
    const uids = async () =>
      (await cluster.list({ kind: kinds.pod, namespace, labels: appLabels(appId) }))
        .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map(({ metadata }) => metadata.uid);
    const before = await uids();
    await drivers.workloads.ensureWorkload({ ...spec, processes: [{ type: 'web', command: 'serve', quantity: 4 }] });
    const scaled = await uids();
    expect(scaled).toHaveLength(4);
    expect(new Set(scaled).isSupersetOf(new Set(before))).toBe(true);
    await drivers.workloads.restartWorkload(appId);
    const restarted = await uids();
    expect(restarted).toHaveLength(4);
    expect(new Set(restarted).isDisjointFrom(new Set(scaled))).toBe(true);
    expect(await weights()).toEqual({ stable: 100, canary: 0 });
  });

  it('switches process types without traffic when the release is promoted', async () => {
    const processes = [
      { type: 'web', command: 'serve', quantity: 1 },
      { type: 'worker', command: 'work', quantity: 2 },
    ];
    await bringLive(specOf(1, { processes }));
    expect(await names()).toEqual(['web.1 v1', 'worker.1 v1', 'worker.2 v1']);
    await bringLive(specOf(2, { processes }));
    await expect.poll(names).toEqual(['web.1 v2', 'worker.1 v2', 'worker.2 v2']);
    expect((await bringLive(specOf(3))).phases.at(-1)).toBe('live');
    await expect.poll(names).toEqual(['web.1 v3', 'web.2 v3']);
  });

  it('takes up a rollout whose process has ended, from the weight that it had', async () => {
    await bringLive(specOf(1));
    const second = specOf(2);
    for await (const { weight } of rollOut(drivers.rollouts, second)) if (weight === 25) break;
    const { phases, steps } = await bringLive(second);
    expect(steps[0]).toEqual([25, { stable: 75, canary: 25 }]);
    expect(phases.at(-1)).toBe('live');
  });

  it('leaves no object of the app but its Services when the workload is deleted', async () => {
    await bringLive(specOf(1));
    expect(await drivers.workloads.deleteWorkload(appId)).toBe(true);
    expect(await drivers.workloads.deleteWorkload(appId)).toBe(false);
    const left = async () => {
      const all = Object.values(kinds).filter(({ namespaced }) => namespaced);
      const found = await Promise.all(all.map((kind) => cluster.list({ kind, namespace, labels: appLabels(appId) })));
      return found.flat().map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    };
    await expect.poll(left).toEqual([`Service app-${appId}`, `Service app-${appId}-canary`]);
  });
});
