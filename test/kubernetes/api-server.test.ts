import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { checkCluster, neededRights } from '#shared/platform/kubernetes/cluster/check-cluster.ts';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { startTestCluster, type TestCluster } from './cluster/start-test-cluster.ts';

const secret = (name: string, value = '') => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default', labels: { watched: 'yes' } },
  type: 'Opaque',
  data: { value: Buffer.from(value).toString('base64') },
});

describe('the client of the API server', () => {
  let running: TestCluster;
  let cluster: Cluster;
  beforeAll(async () => {
    running = await startTestCluster(inject('clusterPrograms'), { controllers: false });
    cluster = connectCluster({ kubeconfig: running.kubeconfig });
  });
  afterAll(() => running?.stop());

  it('reports the definition that is missing, and what installs it', async () => {
    expect(await cluster.serves(kinds.rollout)).toBe(false);
    expect(await cluster.serves(kinds.deployment)).toBe(true);
    await expect(cluster.list({ kind: kinds.rollout })).rejects.toThrow(
      'The cluster does not know the kind Rollout (argoproj.io/v1alpha1). Install Argo Rollouts.',
    );
  });

  it('reports the right that is missing, and the role that it needs', async () => {
    await running.kubectl(['create', 'serviceaccount', 'paas', '--namespace', 'default']);
    const unprivileged = connectCluster({ kubeconfig: await kubeconfigOf('paas') });
    await expect(unprivileged.create(secret('refused'))).rejects.toThrow(
      'The platform lacks the right to create the Secret refused in the namespace default. Give its service account the verb `create` on `secrets` (the core API) in the namespace default.',
    );
    await expect(unprivileged.list({ kind: kinds.deployment })).rejects.toThrow(
      'Give its service account the verb `list` on `deployments` (apps) in the whole cluster.',
    );
  });

  /** Of a service account in the namespace `default`. */
  async function kubeconfigOf(account: string): Promise<string> {
    const token = (await running.kubectl(['create', 'token', account, '--namespace', 'default'])).trim();
    const kubeconfig = join(running.directory, `kubeconfig-${account}`);
    await writeFile(
      kubeconfig,
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name: 'test', cluster: { server: running.url, 'insecure-skip-tls-verify': true } }],
        users: [{ name: 'paas', user: { token } }],
        contexts: [{ name: 'test', context: { cluster: 'test', user: 'paas' } }],
        'current-context': 'test',
      }),
      { mode: 0o600 },
    );
    return kubeconfig;
  }

  it('reports before the start which definitions and rights are missing', async () => {
    const needed = neededRights({ platform: 'paas', gateway: 'gateway', secretsRole: 'paas-tenant-secrets' });
    const problems = await checkCluster(cluster, needed);
    expect(problems).toEqual([
      'The cluster does not know the kind Rollout (argoproj.io/v1alpha1). Install Argo Rollouts.',
      'The cluster does not know the kind HTTPRoute (gateway.networking.k8s.io/v1). Install Gateway API 1.5 or later.',
      'The cluster does not know the kind ListenerSet (gateway.networking.k8s.io/v1). Install Gateway API 1.5 or later.',
      'The cluster does not know the kind Certificate (cert-manager.io/v1). Install cert-manager.',
      'The cluster does not know the kind PipelineRun (tekton.dev/v1). Install Tekton Pipelines.',
    ]);
    await running.kubectl(['create', 'serviceaccount', 'half', '--namespace', 'default']);
    await running.kubectl(['create', 'clusterrole', 'half', '--verb=get,list,watch,create,patch', '--resource=services,leases']);
    await running.kubectl(['create', 'clusterrolebinding', 'half', '--clusterrole=half', '--serviceaccount=default:half']);
    const half = connectCluster({ kubeconfig: await kubeconfigOf('half') });
    const rights = needed.filter(({ kind }) =>
      [kinds.service, kinds.lease, kinds.secret, kinds.clusterRole].some((each) => each === kind),
    );
    await expect
      .poll(async () => (await checkCluster(half, rights)).slice(5))
      .toEqual([
        'The platform lacks the right to delete objects of the kind Service. Give its service account the verb `delete` on `services` (the core API) in the whole cluster.',
        'The platform lacks the right to get objects of the kind Secret in the namespace gateway. Give its service account the verb `get` on `secrets` (the core API) in the namespace gateway.',
        'The platform lacks the right to delete objects of the kind Secret in the namespace gateway. Give its service account the verb `delete` on `secrets` (the core API) in the namespace gateway.',
        'The platform lacks the right to get objects of the kind Secret in the namespace paas-build. Give its service account the verb `get` on `secrets` (the core API) in the namespace paas-build.',
        'The platform lacks the right to create objects of the kind Secret in the namespace paas-build. Give its service account the verb `create` on `secrets` (the core API) in the namespace paas-build.',
        'The platform lacks the right to bind the ClusterRole paas-tenant-secrets. Give its service account the verb `bind` on `clusterroles` (rbac.authorization.k8s.io) in the whole cluster.',
      ]);
  });

  it('reports what an admission policy says', async () => {
    const policy = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'fence' },
      spec: {
        failurePolicy: 'Fail',
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['services'] }],
        },
        validations: [{ expression: 'false', message: 'Services are not allowed here.' }],
      },
    };
    const binding = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'fence' },
      spec: { policyName: 'fence', validationActions: ['Deny'] },
    };
    for (const object of [policy, binding]) await running.kubectl(['apply', '-f', '-'], JSON.stringify(object));
    let count = 0;
    const refused = () => {
      count += 1;
      const metadata = { name: `refused-${count}`, namespace: 'default' };
      const service = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } };
      return cluster.create(service).catch((error: Error) => error.message);
    };
    // A policy takes effect a moment after it has been stored.
    await expect
      .poll(refused)
      .toMatch(
        /^Kubernetes refused to create the Service refused-\d+ in the namespace default: .*Services are not allowed here\.$/,
      );
  });

  it('refuses fields that the cluster does not know, instead of losing them', async () => {
    const { metadata } = secret('unknown');
    const object = { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80, colour: 'red' }] } };
    await expect(cluster.apply(object)).rejects.toThrow(/colour/);
  });

  it('creates once and deletes once, however many ask at the same time', async () => {
    const created = await Promise.all(Array.from({ length: 8 }, () => cluster.create(secret('once'))));
    expect(created.filter((result) => result === 'created')).toHaveLength(1);
    const reference = { kind: kinds.secret, name: 'once', namespace: 'default' };
    const deleted = await Promise.all(Array.from({ length: 8 }, () => cluster.delete(reference)));
    expect(deleted.filter(Boolean)).toHaveLength(1);
    expect(await cluster.read(reference)).toBeUndefined();
  });

  it('keeps the fields of others at an apply, and removes its own that were left out', async () => {
    const reference = { kind: kinds.secret, name: 'shared', namespace: 'default' };
    await cluster.apply({ ...secret('shared'), data: { ours: 'b25l', gone: 'b25l' } });
    await running.kubectl(['patch', 'secret', 'shared', '--type', 'merge', '-p', '{"data":{"theirs":"b25l"}}']);
    await cluster.apply({ ...secret('shared'), data: { ours: 'dHdv' } });
    expect((await cluster.read(reference))?.data).toEqual({ ours: 'dHdv', theirs: 'b25l' });
  });

  it('a watch that is left before its signal aborts ends its request, and nothing else', async () => {
    const broken: unknown[] = [];
    const hear = (error: unknown): void => void broken.push(error);
    process.on('uncaughtException', hear);
    await cluster.create(secret('left'));
    const selection = { kind: kinds.secret, namespace: 'default' };
    for await (const { type } of cluster.watch(selection, new AbortController().signal)) {
      await cluster.apply(secret('left', crypto.randomUUID()));
      if (type === 'MODIFIED') break;
    }
    await cluster.read({ kind: kinds.secret, name: 'left', namespace: 'default' });
    process.off('uncaughtException', hear);
    expect(broken).toEqual([]);
  });

  it('a watch shows what there is and each change, also what happened while the API server was down', async () => {
    const over = new AbortController();
    const seen: string[] = [];
    await cluster.create(secret('first'));
    const watching = (async () => {
      const selection = { kind: kinds.secret, namespace: 'default', labels: { watched: 'yes' } };
      for await (const { type, object } of cluster.watch(selection, over.signal)) seen.push(`${type} ${object.metadata.name}`);
    })();
    await expect.poll(() => seen).toContain('ADDED first');
    await cluster.apply(secret('first', 'changed'));
    await expect.poll(() => seen).toContain('MODIFIED first');

    await running.apiServer.stop();
    await expect(cluster.read({ kind: kinds.secret, name: 'first', namespace: 'default' })).rejects.toThrow(
      /The Kubernetes API server at https:\S+ does not answer \(ECONNREFUSED\)\. Apps that run are not affected/,
    );
    await running.apiServer.start();
    await cluster.create(secret('second'));
    await cluster.delete({ kind: kinds.secret, name: 'first', namespace: 'default' });
    await expect.poll(() => seen).toEqual(expect.arrayContaining(['ADDED second', 'DELETED first']));
    over.abort();
    await watching;
    expect(seen.filter((event) => event === 'ADDED second')).toHaveLength(1);
  });
});
