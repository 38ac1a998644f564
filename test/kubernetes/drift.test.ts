import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { followDrift } from '#shared/core/drift/drift-repair.ts';
import { createLog } from '#shared/log.ts';
import type { Drift } from '#shared/platform/drift.ts';
import { createKubernetesAddons } from '#shared/platform/kubernetes/addons/addons.ts';
import { createKubernetesAppEnvironments } from '#shared/platform/kubernetes/app-environments.ts';
import { createKubernetesBuildCaches } from '#shared/platform/kubernetes/build-caches.ts';
import { createKubernetesCertificates } from '#shared/platform/kubernetes/certificates.ts';
import type { Cluster, ClusterObject } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { type Kind, kinds, resourceName } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { appLabels } from '#shared/platform/kubernetes/names.ts';
import {
  sampleAddonSettings,
  sampleCertificateSettings,
  sampleNamespaceSettings,
  samplePullSecret,
  sampleWorkloadSettings,
} from '#shared/platform/kubernetes/testing/samples.ts';
import { createWorkloadDrivers } from '#shared/platform/kubernetes/workloads/workload-drivers.ts';
import { type CoreFixture, createCoreFixture, type FixtureApp } from '#test/support/core/core-fixture.ts';
import { runChecked } from '#test/support/run-program.ts';
import { type ApiProxy, type Fault, startApiProxy } from './cluster/start-api-proxy.ts';

const goalSeconds = 30;
const seconds = (from: number): number => (Date.now() - from) / 1000;

/** Core on a real PostgreSQL and a real cluster: only builds, logs and metrics are in memory. */
describe('objects that somebody else changes or deletes', () => {
  let core: CoreFixture;
  let owner: Principal;
  let app: FixtureApp;
  /** Reads and deletes as a person does. */
  let person: Cluster;
  let proxy: ApiProxy;
  let drift: Drift;
  let namespace: string;
  const over = new AbortController();
  let following: Promise<void>;

  beforeAll(async () => {
    proxy = await startApiProxy(inject('kubeconfig'), `drift-${process.pid}`);
    person = connectCluster({ kubeconfig: inject('kubeconfig') });
    const log = createLog('warn', (line) => process.env['PAAS_TEST_LOG'] === undefined || process.stderr.write(`${line}\n`));
    const observed = createKubernetesDrift({
      cluster: connectCluster({ kubeconfig: proxy.kubeconfig }),
      clock: systemClock,
      log,
    });
    const { cluster } = observed;
    drift = observed.drift;
    const drivers = createWorkloadDrivers({
      cluster,
      settings: { ...sampleWorkloadSettings, pullSecret: samplePullSecret },
      logs: { appendPlatformLog: async () => undefined },
    });
    core = await createCoreFixture({
      ports: {
        drift,
        appEnvironments: createKubernetesAppEnvironments(cluster, { ...sampleNamespaceSettings, pullSecret: samplePullSecret }),
        caches: createKubernetesBuildCaches(cluster),
        certificates: createKubernetesCertificates(cluster, sampleCertificateSettings),
        addons: createKubernetesAddons(cluster, sampleAddonSettings),
        ...drivers,
      },
    });
    await person.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paas-build' } });
    const auths = { [samplePullSecret.host]: { username: 'puller', password: 'secret' } };
    const metadata = { name: samplePullSecret.secret, namespace: 'paas-build' };
    const data = { '.dockerconfigjson': Buffer.from(JSON.stringify({ auths })).toString('base64') };
    await person.create({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/dockerconfigjson', data });
    following = followDrift(core.context, drift, over.signal);
    await core.startWorker();
    owner = await core.signUp();
    namespace = `tenant-${owner.tenantId}`;
    app = await core.createApp(owner);
    await core.services.addons.createAddon(owner, app.id, { type: 'kvstore', plan: 'free' });
    await app.commit();
    const pushed = await app.push('main');
    expect(pushed.code, `${pushed.stderr}\n${core.logged.slice(-3).join('\n')}`).toBe(0);
    await core.services.processes.scaleProcess(owner, app.id, 'worker', 1);
    await vi.waitUntil(async () => (await instances()).length === 2, { timeout: 120_000, interval: 250 });
    await untilQuiet();
  }, 400_000);
  afterAll(async () => {
    over.abort();
    await following;
    await core?.close();
    await proxy?.close();
    await person?.delete({ kind: kinds.namespace, name: namespace });
  }, 120_000);

  const instances = async () =>
    (await core.context.platform.workloads.readInstances(app.id)).filter(({ state }) => state === 'up').map(({ name }) => name);
  const jobsLeft = async (): Promise<number> => {
    const due = sql<{ count: string }>`
      select count(*) from graphile_worker._private_jobs where run_at <= now() + interval '1 minute'`;
    const { rows } = await due.execute(core.context.db);
    return Number(rows[0]?.count);
  };
  /** No job is left. */
  async function untilQuiet(): Promise<void> {
    await vi.waitUntil(async () => (await jobsLeft()) === 0, { timeout: 120_000, interval: 250 });
  }
  /** All objects of the tenant and of the app's host that the platform has made, without what changes by itself. */
  async function snapshot(): Promise<Record<string, unknown>> {
    const host = core.context.addresses.appHost(app.name);
    const entries: [string, unknown][] = [];
    for (const kind of watched) {
      const place = kind === kinds.certificate || kind === kinds.listenerSet ? 'gateway' : namespace;
      const found = await person.list({ kind, ...(kind.namespaced ? { namespace: place } : {}) });
      for (const object of found) {
        const { name, labels = {} } = object.metadata;
        if (labels['app.kubernetes.io/managed-by'] !== 'paas' || (object.metadata.ownerReferences ?? []).length > 0) continue;
        if (place === 'gateway' ? name !== host : !kind.namespaced && name !== namespace) continue;
        entries.push([`${kind.kind} ${name}`, { labels, spec: stable(object), data: stableData(object) }]);
      }
    }
    return Object.fromEntries(entries);
  }
  const watched: readonly Kind[] = [
    ...[kinds.namespace, kinds.resourceQuota, kinds.limitRange, kinds.networkPolicy, kinds.service, kinds.secret],
    ...[kinds.configMap, kinds.deployment, kinds.rollout, kinds.httpRoute, kinds.certificate, kinds.listenerSet],
  ];
  /** What follows from an object that is deleted, too: a store's own password, and how the newest rollout has ended. */
  function stableData({ metadata: { name }, data }: ClusterObject): unknown {
    if (name.endsWith('-config')) return Object.keys(data ?? {});
    return name.endsWith('-state') ? (JSON.parse(data?.['state'] ?? '{}') as { live: unknown }).live : data;
  }
  /** Addresses and hashes are given anew to what is created anew. */
  function stable({ kind, spec }: ClusterObject): unknown {
    if (kind === 'Rollout') {
      // Each rollout has steps of its own; those of one that is over say nothing.
      const { strategy: _, ...own } = spec as { strategy: unknown };
      return own;
    }
    if (kind !== 'Service') return spec;
    const { selector, ports, type } = spec as { selector: Record<string, string>; ports: unknown; type: string };
    const { 'rollouts-pod-template-hash': _, ...own } = selector;
    return { selector: own, ports, type };
  }

  it('are put back within 30 s, each of them, whether it is deleted or edited', { timeout: 900_000 }, async () => {
    const before = await snapshot();
    expect(Object.keys(before).length).toBeGreaterThan(20);
    const times: Record<string, number> = {};
    const untilBack = async (name: string, what: string): Promise<void> => {
      const from = Date.now();
      await expect
        .poll(async () => (await snapshot())[name], { timeout: 120_000, interval: 1000, message: `${name} is back` })
        .toEqual(before[name]);
      times[what] = Math.max(times[what] ?? 0, seconds(from));
    };
    // Deleting the namespace is a test of its own.
    const names = Object.keys(before).filter((name) => !name.startsWith('Namespace'));
    for (const name of names) {
      const [kindName = '', objectName = ''] = name.split(' ');
      const kind = watched.find((each) => each.kind === kindName) as Kind;
      const place = kind === kinds.certificate || kind === kinds.listenerSet ? 'gateway' : namespace;
      expect(await person.delete({ kind, name: objectName, namespace: place }), name).toBe(true);
    }
    await Promise.all(names.map((name) => untilBack(name, `${name.split(' ')[0]} deleted`)));
    await untilQuiet();
    for (const round of edits()) {
      await Promise.all(round.map(([, reference, change]) => edit(reference, change)));
      await Promise.all(round.map(([what, { kind, name }]) => untilBack(`${kind.kind} ${name}`, what)));
      await untilQuiet();
    }
    process.stderr.write(`seconds to heal: ${JSON.stringify(times)}\n`);
    expect(Object.entries(times).filter(([, time]) => time > goalSeconds)).toEqual([]);
    await expect.poll(snapshot).toEqual(before);
    await expect.poll(instances, { timeout: 60_000 }).toEqual(['web.1', 'worker.1']);
  });

  /** By kubectl, which writes in its own name. */
  async function edit({ kind, name, namespace: place }: Parameters<Cluster['patch']>[0], change: object): Promise<void> {
    const args = ['--kubeconfig', inject('kubeconfig'), ...(place === undefined ? [] : ['--namespace', place])];
    const patch = ['patch', resourceName(kind), name, '--type=merge', '--patch', JSON.stringify(change)];
    await runChecked(inject('clusterPrograms').cluster, ['kubectl', ...args, ...patch], {});
  }

  type Edit = [string, Parameters<Cluster['patch']>[0], object];
  function edits(): Edit[][] {
    const of = (kind: Kind, name: string) => ({ kind, name, namespace });
    const name = `app-${app.id}`;
    const service = of(kinds.service, name);
    const worker = of(kinds.deployment, `${name}-worker`);
    const route = of(kinds.httpRoute, name);
    return [
      [
        ['a policy is opened', of(kinds.networkPolicy, 'default-deny'), { spec: { ingress: [{}] } }],
        ['a quota is raised', of(kinds.resourceQuota, 'tenant'), { spec: { hard: { pods: '100000' } } }],
        ['a label of pod security is relaxed', { kind: kinds.namespace, name: namespace }, psa('privileged')],
        ['a Service leads elsewhere', service, { spec: { selector: { 'process-type': 'worker', 'app-id': 'x' } } }],
        ['a variable is added', worker, variable],
        ['a rollout is paused', of(kinds.rollout, name), { spec: { paused: true } }],
        ['a secret has one more key', of(kinds.secret, `${name}-kvstore-url`), { data: { OTHER: 'eA==' } }],
        ['a password is changed', of(kinds.secret, 'registry-pull'), { data: { '.dockerconfigjson': 'e30=' } }],
        ['a route has another host', route, { spec: { hostnames: ['evil.example.com'] } }],
      ],
      [
        ['a Service has another port', service, { spec: { ports: [{ port: 81 }] } }],
        ['instances are removed', worker, { spec: { replicas: 0 } }],
        ['a route leads elsewhere', route, { spec: { rules: [{ backendRefs: [{ name: 'other', port: 80 }] }] } }],
      ],
    ];
  }
  const psa = (level: string) => ({ metadata: { labels: { 'pod-security.kubernetes.io/enforce': level } } });
  const variable = {
    spec: {
      template: { spec: { containers: [{ name: 'process', image: 'registry.local/other', env: [{ name: 'X', value: 'y' }] }] } },
    },
  };

  it('a namespace that somebody deletes comes back with everything in it', { timeout: 300_000 }, async () => {
    const before = Object.keys(await snapshot()).toSorted();
    const from = Date.now();
    await person.delete({ kind: kinds.namespace, name: namespace });
    await expect
      .poll(async () => (await person.read({ kind: kinds.namespace, name: namespace }))?.metadata.deletionTimestamp, {
        timeout: 60_000,
      })
      .toBeUndefined();
    await expect.poll(async () => Object.keys(await snapshot()).toSorted(), { timeout: 120_000, interval: 1000 }).toEqual(before);
    await expect.poll(instances, { timeout: 120_000 }).toEqual(['web.1', 'worker.1']);
    process.stderr.write(`seconds until a deleted namespace is whole: ${seconds(from)}\n`);
    await untilQuiet();
  });

  it('nothing is asked of the API server while nobody changes anything', { timeout: 120_000 }, async () => {
    await untilQuiet();
    const from = proxy.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 15_000));
    const idle = proxy.requests.slice(from).filter(({ isWatch }) => !isWatch);
    expect(idle.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  const faults: [string, (isWatch: boolean, method: string) => Fault | undefined][] = [
    ['watches are cut', () => undefined],
    ['watches are too old (410)', (isWatch) => (isWatch ? { status: 410, reason: 'Expired' } : undefined)],
    ['every request is refused (429, Retry-After 2)', () => ({ status: 429, headers: { 'retry-after': '2' } })],
    ['every request fails (500)', () => ({ status: 500 })],
    ['connections break', () => ({ cut: true })],
    [
      'every change is a conflict (409)',
      (isWatch, method) => (method === 'PATCH' && !isWatch ? { status: 409, reason: 'Conflict' } : undefined),
    ],
    ['every answer takes 3 s', () => ({ delayMilliseconds: 3000 })],
  ];
  it.each(faults)(
    'are put back although %s for 20 s, with few requests meanwhile',
    { timeout: 300_000 },
    async (what, refuse) => {
      const policy = { kind: kinds.networkPolicy, name: 'allow-internet', namespace };
      const before = await person.read(policy);
      const from = Date.now();
      proxy.fault = ({ isWatch, method }) => refuse(isWatch, method);
      proxy.cutWatches();
      await person.patch(policy, { spec: { egress: [{}] } });
      await person.delete({ kind: kinds.secret, name: `app-${app.id}-kvstore-url`, namespace });
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      proxy.fault = () => undefined;
      const during = proxy.requests.filter(({ at }) => at >= from);
      const healed = Date.now();
      await expect.poll(async () => (await person.read(policy))?.spec, { timeout: 120_000, interval: 500 }).toEqual(before?.spec);
      await expect
        .poll(() => person.read({ kind: kinds.secret, name: `app-${app.id}-kvstore-url`, namespace }), {
          timeout: 120_000,
          interval: 500,
        })
        .toBeDefined();
      const rate = during.length / seconds(from);
      process.stderr.write(
        `${what}: ${rate.toFixed(1)} requests/s meanwhile, healed ${seconds(healed).toFixed(1)} s after its end\n`,
      );
      expect(rate).toBeLessThan(15);
      await untilQuiet();
    },
  );

  it('a soft deletion stops what runs and keeps the rest, a restore brings it back, a purge leaves nothing in any API group', {
    timeout: 300_000,
  }, async () => {
    await core.services.appDeletion.deleteApp(owner, app.id);
    await expect.poll(instances, { timeout: 120_000 }).toEqual([]);
    await untilQuiet();
    expect(await person.read({ kind: kinds.service, name: `app-${app.id}`, namespace })).toBeDefined();
    expect(await person.list({ kind: kinds.deployment, namespace, labels: appLabels(app.id) })).toHaveLength(1);
    await core.services.appDeletion.restoreApp(owner, app.id);
    await expect.poll(instances, { timeout: 120_000 }).toEqual(['web.1', 'worker.1']);
    await untilQuiet();
    await core.services.appDeletion.deleteApp(owner, app.id);
    await expect.poll(instances, { timeout: 120_000 }).toEqual([]);
    await untilQuiet();
    await core.context.db
      .updateTable('apps')
      .set({ deleted_at: new Date(0) })
      .where('id', '=', app.id)
      .execute();
    await core.context.jobs.enqueue(core.context.db, 'purge-app', { appId: app.id });
    await untilQuiet();
    await expect.poll(() => tracesIn(app.id), { timeout: 120_000, interval: 1000 }).toEqual([]);
  });

  /** Objects of all kinds that the API server has, with the id anywhere in them. Events are the cluster's own log. */
  async function tracesIn(appId: string): Promise<string[]> {
    const { server, token } = await credentials();
    const ask = async <Answer>(path: string): Promise<Answer> => {
      const response = await fetch(`${server}${path}`, { headers: { authorization: `Bearer ${token}` } });
      return (await response.json()) as Answer;
    };
    const { groups } = await ask<{ groups: { preferredVersion: { groupVersion: string } }[] }>('/apis');
    const roots = ['/api/v1', ...groups.map(({ preferredVersion }) => `/apis/${preferredVersion.groupVersion}`)];
    const traces: string[] = [];
    for (const root of roots) {
      const { resources = [] } = await ask<{ resources?: { name: string; verbs: string[] }[] }>(root);
      for (const { name, verbs } of resources) {
        if (!verbs.includes('list') || name === 'events') continue;
        const { items = [] } = await ask<{ items?: ClusterObject[] }>(`${root}/${name}`);
        for (const item of items)
          if (JSON.stringify(item).includes(appId))
            traces.push(`${root}/${name} ${item.metadata.namespace ?? ''}/${item.metadata.name}`);
      }
    }
    expect(roots.length).toBeGreaterThan(15);
    return traces;
  }
  async function credentials(): Promise<{ server: string; token: string }> {
    const config = JSON.parse(await readFile(proxy.kubeconfig, 'utf8')) as {
      clusters: { cluster: { server: string } }[];
      users: { user: { token: string } }[];
    };
    return { server: config.clusters[0]?.cluster.server ?? '', token: config.users[0]?.user.token ?? '' };
  }
});
