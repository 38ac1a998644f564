import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, it } from 'vitest';
import type { Cluster } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { awaitLeadership } from '#shared/platform/kubernetes/leadership/await-leadership.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { type PartProcess, startPart } from '#test/support/platform/running-processes.ts';
import { runChecked } from '#test/support/run-program.ts';
import { freePort } from '#test/support/servers/free-port.ts';
import { startApiProxy } from './cluster/start-api-proxy.ts';

describe('a worker that PAAS_PLATFORM=kubernetes starts', { timeout: 120_000 }, () => {
  const namespace = `platform-${crypto.randomUUID().slice(0, 8)}`;
  let cluster: Cluster;
  let database: TestDatabase;
  let dataDir: string;
  let settings: Record<string, string>;
  const running: PartProcess[] = [];

  beforeAll(async () => {
    cluster = connectCluster({ kubeconfig: inject('kubeconfig') });
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  });
  afterAll(() => cluster.delete({ kind: kinds.namespace, name: namespace }));
  beforeEach(async () => {
    database = await createTestDatabase();
    dataDir = await mkdtemp(join(tmpdir(), 'paas-worker-'));
    settings = {
      PAAS_PLATFORM: 'kubernetes',
      PAAS_KUBECONFIG: inject('kubeconfig'),
      PAAS_KUBERNETES_NAMESPACE: namespace,
      PAAS_KUBERNETES_REPOSITORY: 'registry.example.com/paas',
      PAAS_DATABASE_URL: database.url,
      PAAS_DATABASE_AUTH: 'any',
      PAAS_DATA_DIR: dataDir,
      PAAS_METRICS_PORT: String(await freePort()),
    };
  });
  afterEach(async () => {
    for (const part of running.splice(0)) await part.end('SIGKILL');
    await database.close();
    await rm(dataDir, { recursive: true, force: true });
  });
  const start = (changed: Record<string, string> = {}): PartProcess => {
    const part = startPart('worker', { ...settings, ...changed });
    running.push(part);
    return part;
  };

  it('waits for the lease, limits what builds may do, leads, and gives the lease back at its end', async () => {
    const over = new AbortController();
    const other = await awaitLeadership({ cluster, namespace, name: 'paas-worker', holder: 'other' }, over.signal);
    const worker = start();
    await worker.printed(`-----> Waiting for the Lease paas-worker in the namespace ${namespace}.`);
    await other.release();
    await worker.printed('paas worker is ready');
    expect(
      (await cluster.list({ kind: kinds.networkPolicy, namespace: 'paas-build' })).map(({ metadata }) => metadata.name),
    ).toContain('default-deny');
    const holder = async (): Promise<unknown> =>
      (
        (await cluster.read({ kind: kinds.lease, name: 'paas-worker', namespace }))?.spec as
          | { holderIdentity?: string }
          | undefined
      )?.holderIdentity;
    expect(await holder()).not.toBe('other');
    expect(await worker.end('SIGTERM')).toBe(0);
    expect(await holder()).toBe('');
  });

  it('ends when it is cut off from the API server, before another one may lead', async () => {
    const proxy = await startApiProxy(inject('kubeconfig'), `cut-${namespace}`);
    try {
      const worker = start({ PAAS_KUBECONFIG: proxy.kubeconfig });
      await worker.printed('paas worker is ready');
      proxy.fault = () => ({ cut: true });
      const other = await awaitLeadership(
        { cluster, namespace, name: 'paas-worker', holder: 'other' },
        AbortSignal.timeout(60_000),
      );
      expect(await Promise.race([worker.exited, Promise.resolve('still there')])).toBe(1);
      expect(worker.output()).toContain('The Lease was lost');
      await other.release();
    } finally {
      await proxy.close();
    }
  });

  it('refuses to start in one sentence for each right that it lacks, and changes nothing', async () => {
    const account = `nobody-${crypto.randomUUID().slice(0, 8)}`;
    const { cluster: program } = inject('clusterPrograms');
    const kubectl = (...args: string[]) => runChecked(program, ['kubectl', '--kubeconfig', inject('kubeconfig'), ...args]);
    await kubectl('create', 'serviceaccount', account, '-n', namespace);
    const token = (await kubectl('create', 'token', account, '-n', namespace)).stdout.trim();
    const config = JSON.parse((await kubectl('config', 'view', '--raw', '-o', 'json')).stdout) as { users: object[] };
    const kubeconfig = join(dataDir, 'kubeconfig');
    config.users = [{ name: 'admin', user: { token } }];
    await writeFile(kubeconfig, JSON.stringify(config), { mode: 0o600 });
    const worker = start({ PAAS_KUBECONFIG: kubeconfig });
    expect(await worker.exited).toBe(1);
    const lines = worker.output().split('\n');
    expect(lines).toContain(
      ' !     The platform lacks the right to get objects of the kind Namespace. Give its service account the verb `get` on `namespaces` (the core API) in the whole cluster.',
    );
    expect(lines).toContain(
      ` !     The platform lacks the right to patch objects of the kind Lease in the namespace ${namespace}. Give its service account the verb \`patch\` on \`leases\` (coordination.k8s.io) in the namespace ${namespace}.`,
    );
    for (const line of lines) expect(line).toMatch(/^ !     The platform lacks the right to /);
  });

  it.each([
    [{ PAAS_KUBECONFIG: '/nowhere/kubeconfig' }, /^ !     PAAS_KUBECONFIG: \/nowhere\/kubeconfig cannot be used \(.+\)\.$/],
    [{ PAAS_KUBECONFIG: '' }, /^ !     PAAS_KUBECONFIG: must name a kubeconfig, since this process does not run in a pod\.$/],
  ])('says in one line that it has no cluster: %o', async (changed, line) => {
    const worker = start(changed);
    expect(await worker.exited).toBe(1);
    expect(worker.output()).toMatch(line);
  });
});
