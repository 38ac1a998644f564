import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newTenantId, newUuid } from '#shared/ids.ts';
import { createLog } from '#shared/log.ts';
import { buildNamespace } from '#shared/names.ts';
import { neededRights } from '#shared/platform/kubernetes/cluster/check-cluster.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { apiGroup, type Kind, kinds, resourceName } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { createKubernetesDrift } from '#shared/platform/kubernetes/drift/kubernetes-drift.ts';
import { workerLabels } from '#shared/platform/kubernetes/names.ts';
import { parseSettings } from '#shared/settings/settings.ts';
import { run, runChecked } from '#test/support/run-program.ts';
import { buildHelm } from './cluster/build-helm.ts';
import { type Right, requestedRights, rightOf } from './cluster/requested-rights.ts';
import { startApiProxy } from './cluster/start-api-proxy.ts';
import { startTestCluster, type TestCluster } from './cluster/start-test-cluster.ts';
import { useDriver } from './cluster/use-driver.ts';

const chart = fileURLToPath(new URL('../../deploy/chart', import.meta.url));
const namespace = 'paas-system';
const gatewayNamespace = 'gateway';
const values = [
  '--set',
  'image.repository=registry.local/paas,existingSecret=paas,sshHostKeysSecret=paas-ssh',
  '--set',
  'registry.repository=registry.local/apps',
];
const everything = ['--set', 'cloudNativePg.create=true,settings.PAAS_SIGNUP=closed', ...values];

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string> };
  rules?: { apiGroups: string[]; resources: string[]; verbs: string[]; resourceNames?: string[] }[];
  spec?: {
    template?: {
      metadata: { labels: Record<string, string> };
      spec: { containers: { env?: { name: string; value?: string }[] }[] };
    };
  };
}

describe('the chart', () => {
  let helmPath: string;
  let running: TestCluster;
  let admin: Cluster;
  beforeAll(async () => {
    helmPath = await buildHelm((line) => process.stderr.write(`${line}\n`));
    running = await startTestCluster(inject('clusterPrograms'));
    admin = connectCluster({ kubeconfig: running.kubeconfig });
    await running.kubectl(['create', 'namespace', namespace]);
  }, 900_000);
  afterAll(() => running?.stop());

  const environment = () => ({ env: { KUBECONFIG: running.kubeconfig, HOME: running.directory } });
  const helm = (...args: readonly string[]) => runChecked(helmPath, [...args, '--namespace', namespace], environment());
  async function render(...args: readonly string[]): Promise<Manifest[]> {
    const { stdout } = await helm('template', 'paas', chart, ...args);
    return parseAllDocuments(stdout).flatMap((document) => (document.toJS() as Manifest | null) ?? []);
  }

  it('is without faults, and says which value is bad or missing', async () => {
    expect((await helm('lint', chart, '--strict', ...values)).output).toContain('0 chart(s) failed');
    for (const [bad, name] of [
      ['image.repository=', 'repository'],
      ['registry.repository=', 'registry'],
      ['baseUrl=paas.example.com', 'baseUrl'],
      ['buildNamespace=other', 'buildNamespace'],
      ['gateway.create=true', 'className'],
      ['replicas=3', 'replicas'],
      ['settings.FOO=bar', 'FOO'],
    ] as const) {
      const refused = await run(helmPath, ['template', 'paas', chart, ...values, '--set', bad], environment());
      expect(refused.code, bad).not.toBe(0);
      expect(refused.output).toContain(name);
    }
  });

  it('gives every process settings that it knows, and the labels that the tenants let in', async () => {
    const pods = (await render(...everything)).flatMap(({ spec }) => spec?.template ?? []);
    expect(pods).toHaveLength(4);
    for (const { spec } of pods)
      for (const { env = [] } of spec.containers) {
        const secret = { PAAS_DATABASE_URL: 'postgres://db/app', PAAS_SECRET_KEY: `${'A'.repeat(43)}=` };
        const store = { PAAS_OBJECT_STORE_URL: 'https://s3.example.com/bucket' };
        const other = (name: string): string => ({ ...secret, ...store })[name] ?? 'x'.repeat(20);
        const given = Object.fromEntries(env.map(({ name, value }) => [name, value ?? other(name)]));
        expect(parseSettings(given)).toMatchObject({
          platform: 'kubernetes',
          signup: 'closed',
          kubernetes: {
            namespace,
            secretsRole: { role: 'paas-tenant-secrets', serviceAccount: 'paas-worker' },
            gateway: { namespace: gatewayNamespace, name: 'paas' },
            repository: 'registry.local/apps',
          },
        });
      }
    const labels = pods.map(({ metadata }) => metadata.labels);
    expect(labels.filter((each) => Object.entries(workerLabels).every(([name, value]) => each[name] === value))).toHaveLength(1);
  });

  it('is accepted by the API server as it is, is installed, and is upgraded after its migration', {
    timeout: 600_000,
  }, async () => {
    const { stdout } = await helm('template', 'paas', chart, ...everything);
    // A dry run makes no namespace for what is in it.
    await running.kubectl(['create', 'namespace', buildNamespace]);
    await running.kubectl(['apply', '--dry-run=server', '-f', '-'], stdout);
    await running.kubectl(['delete', 'namespace', buildNamespace]);
    await helm('install', 'paas', chart, ...values);
    const replicas = async (name: string): Promise<unknown> =>
      ((await admin.read({ kind: kinds.deployment, name, namespace }))?.status as { readyReplicas?: number } | undefined)
        ?.readyReplicas;
    for (const name of ['paas-api', 'paas-sshd', 'paas-worker'])
      await expect.poll(() => replicas(name), { timeout: 120_000 }).toBe(2);
    await helm('upgrade', 'paas', chart, ...values, '--set', 'api.replicas=3,image.tag=0.2.0');
    await expect.poll(() => replicas('paas-api'), { timeout: 120_000 }).toBe(3);
    const events = await running.kubectl([
      'get',
      'events',
      '-n',
      namespace,
      '-o',
      'jsonpath={range .items[*]}{.reason} {.involvedObject.name}{"\\n"}{end}',
    ]);
    expect(events).toContain('Completed paas-migrate');
    const images = await running.kubectl(['get', 'pods', '-n', namespace, '-o', 'jsonpath={.items[*].spec.containers[*].image}']);
    expect(images).toContain('registry.local/paas:0.2.0');
  });

  /** A client with the rights of the chart's worker, whose requests are recorded. */
  async function workerConnection(name: string, token: string) {
    const config = join(running.directory, name);
    const users = [{ name: 'paas', user: { token } }];
    await writeFile(
      config,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'test', cluster: { server: running.url, 'insecure-skip-tls-verify': true } }],
        users,
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'paas' } }],
        'current-context': 'test',
      }),
      { mode: 0o600 },
    );
    return startApiProxy(config, 'proxy');
  }
  const tokenOf = async (account: string): Promise<string> =>
    (await running.kubectl(['create', 'token', account, '--namespace', namespace])).trim();

  it('gives the worker the rights that it needs, and no other', { timeout: 600_000 }, async () => {
    const proxy = await workerConnection('worker', await tokenOf('paas-worker'));
    const over = new AbortController();
    try {
      const observed = createKubernetesDrift({
        cluster: connectCluster({ kubeconfig: proxy.kubeconfig }),
        clock: systemClock,
        log: createLog('warn', (line) => process.stderr.write(`${line}\n`)),
      });
      const tenantId = newTenantId();
      const appId = newUuid<AppId>();
      await useDriver(observed, { appId, tenantId, namespace, kubectl: running.kubectl }, over);
      const granted = grantedRights(await render(...values), `tenant-${tenantId}`);
      const needed = requestedRights(proxy.requests);
      // A RoleBinding to a role needs the right to bind it.
      needed.add(rightOf('', 'bind', 'rbac.authorization.k8s.io', 'clusterroles'));
      const covers = (right: Right): boolean => {
        const [, verb, resource] = right.split(' ');
        return granted.has(right) || granted.has(` ${verb} ${resource}`);
      };
      expect([...needed].filter((right) => !covers(right)).toSorted()).toEqual([]);
      const used = new Set([...needed].flatMap((right) => [right, right.replace(/^\S*/, '')]));
      expect([...granted].filter((right) => !used.has(right)).toSorted()).toEqual([]);
    } finally {
      over.abort();
      await proxy.close();
    }
  });

  it('gives the worker what the check of its start asks for, right by right', async () => {
    const places = { platform: namespace, gateway: gatewayNamespace, secretsRole: 'paas-tenant-secrets' };
    const needed = neededRights(places).map(({ verb, kind, namespace: place = '', subresource }) => {
      const group = kind.apiVersion.includes('/') ? (kind.apiVersion.split('/')[0] ?? '') : '';
      return rightOf(place, verb, group, subresource === undefined ? kind.plural : `${kind.plural}/${subresource}`);
    });
    const granted = [...grantedRights(await render(...values), 'tenant')].filter((right) => !right.startsWith('tenant '));
    expect(needed.toSorted()).toEqual(granted.toSorted());
  });

  /** Of all roles of the worker: `tenant` stands for the namespaces in which it binds one to itself. */
  function grantedRights(manifests: readonly Manifest[], tenant: string): Set<Right> {
    const places: Readonly<Record<string, string>> = {
      'paas-worker': '',
      'paas-tenant-secrets': tenant,
      'paas-certificates': gatewayNamespace,
      'paas-lease': namespace,
      'paas-builds': buildNamespace,
    };
    const roles = manifests.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
    expect(roles.map(({ metadata }) => metadata.name).toSorted()).toEqual(Object.keys(places).toSorted());
    return new Set(
      roles.flatMap(({ metadata, rules = [] }) =>
        rules.flatMap(({ apiGroups, resources, verbs }) =>
          apiGroups.flatMap((group) =>
            resources.flatMap((resource) => verbs.map((verb) => rightOf(places[metadata.name] ?? '', verb, group, resource))),
          ),
        ),
      ),
    );
  }

  it('leaves no right out without one sentence that names it', { timeout: 300_000 }, async () => {
    await running.kubectl(['create', 'serviceaccount', 'nobody', '--namespace', namespace]);
    const proxy = await workerConnection('nobody', await tokenOf('nobody'));
    const nobody = connectCluster({ kubeconfig: proxy.kubeconfig });
    try {
      const rules = (await render(...values)).flatMap(({ rules: each = [] }) => each);
      for (const { apiGroups, resources, verbs } of rules)
        for (const resource of resources)
          for (const verb of verbs) {
            const [plural, subresource] = resource.split('/');
            const kind = (Object.values(kinds) as Kind[]).find(
              (each) => each.plural === plural && apiGroup(each).group === apiGroups[0],
            );
            // `bind` is no request of its own; its lack is a refused RoleBinding.
            if (verb === 'bind') expect(resource).toBe('clusterroles');
            else if (kind === undefined) expect.fail(`the driver does not know ${resource}`);
            else
              await expect(attempt(nobody, verb, kind, subresource), `${verb} ${resource}`).rejects.toThrow(
                `the verb \`${verb}\` on \`${resource}\``,
              );
          }
    } finally {
      await proxy.close();
    }
  });

  async function attempt(cluster: Cluster, verb: string, kind: Kind, subresource: string | undefined): Promise<unknown> {
    const reference = { kind, name: 'x', ...(kind.namespaced ? { namespace: 'default' } : {}) };
    const { apiVersion, kind: kindName } = kind;
    const object = {
      apiVersion,
      kind: kindName,
      metadata: { name: 'x', ...(kind.namespaced ? { namespace: 'default' } : {}) },
      spec: {},
    };
    switch (verb) {
      case 'get':
        return subresource === 'log'
          ? cluster.readPodLog({ namespace: 'default', name: 'x', container: 'x' }, 1)
          : cluster.read(reference);
      case 'list':
        return cluster.list({ kind });
      case 'watch': {
        // The right to list is there, that to watch is not.
        const role = `list-${kind.plural}-${kind.apiVersion.replaceAll(/[^a-z0-9]/g, '-')}`;
        await running.kubectl(['create', 'clusterrole', role, '--verb=list', `--resource=${resourceName(kind)}`]);
        await running.kubectl([
          'create',
          'clusterrolebinding',
          role,
          `--clusterrole=${role}`,
          `--serviceaccount=${namespace}:nobody`,
        ]);
        await vi.waitUntil(
          () =>
            cluster.list({ kind }).then(
              () => true,
              () => false,
            ),
          { timeout: 20_000, interval: 200 },
        );
        for await (const _ of cluster.watch({ kind }, AbortSignal.timeout(20_000)));
        return;
      }
      case 'create':
        return cluster.create(object);
      case 'patch':
        return cluster.patch(reference, {}, subresource === 'status' ? 'status' : undefined);
      default:
        return deleteWithGet(cluster, reference);
    }
  }
  /** A deletion reads first: with the right to read, that to delete is what is missing. */
  async function deleteWithGet(cluster: Cluster, reference: Parameters<Cluster['delete']>[0]): Promise<unknown> {
    return cluster.delete(reference).catch((error: Error) => {
      throw new Error(error.message.replace('the verb `get`', 'the verb `delete`'));
    });
  }

  it('keeps the worker out of all namespaces that are not its own, and says so', { timeout: 120_000 }, async () => {
    const proxy = await workerConnection('fenced', await tokenOf('paas-worker'));
    const worker = connectCluster({ kubeconfig: proxy.kubeconfig });
    const service = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'x', namespace: 'kube-system' },
      spec: { ports: [{ port: 80 }] },
    };
    const labels = { 'pod-security.kubernetes.io/enforce': 'privileged' };
    try {
      await expect(worker.create(service)).rejects.toThrow(
        /admission policy paas-fence says: the platform changes nothing in the namespace kube-system/,
      );
      await expect(worker.delete({ kind: kinds.namespace, name: 'gateway' })).rejects.toThrow('the namespace gateway');
      for (const name of ['other', 'tenant-relaxed'])
        await expect(worker.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })).rejects.toThrow(
          /paas-fence says/,
        );
      await expect(worker.list({ kind: kinds.secret, namespace: 'kube-system' })).rejects.toThrow('the verb `list` on `secrets`');
    } finally {
      await proxy.close();
    }
  });
});
