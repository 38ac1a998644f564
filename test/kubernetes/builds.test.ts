import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { describeBuilds } from '#shared/platform/contract/builds.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { type BuildsUnderTest, openBuildsUnderTest } from '#shared/platform/kubernetes/testing/builds-under-test.ts';
import { startFakeRegistry } from '#shared/platform/kubernetes/testing/fake-registry.ts';
import { taskRunName } from '#shared/platform/kubernetes/testing/scripted-lifecycle.ts';
import { buildSpec, buildToEnd, buildUntilStarted, sourceOf, watchToEnd } from '#shared/platform/testing/build-specs.ts';
import { runChecked } from '#test/support/run-program.ts';
import { openPodLogs } from './cluster/pod-logs.ts';
import { startTestCluster, type TestCluster } from './cluster/start-test-cluster.ts';

/** Builds on a cluster whose pods kwok plays. */
async function open(kubeconfig: string, setsSecurityContext = true): Promise<BuildsUnderTest> {
  const cluster = connectCluster({ kubeconfig });
  const { cluster: program } = inject('clusterPrograms');
  const kubectl = async (args: readonly string[], input?: string): Promise<string> =>
    (await runChecked(program, ['kubectl', '--kubeconfig', kubeconfig, ...args], input === undefined ? {} : { input })).stdout;
  await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'paas-build' } });
  const logs = await openPodLogs(kubectl);
  const registry = await startFakeRegistry();
  return openBuildsUnderTest({
    cluster,
    registry: registry.host,
    collectsGarbage: false,
    setsSecurityContext,
    print: (pod, line) => logs.print(pod, line),
    async started(pod) {
      await logs.prepare(pod);
      const { name, namespace = '' } = pod.metadata;
      for await (const { object } of cluster.watch(
        { kind: kinds.pod, namespace, labels: pod.metadata.labels ?? {} },
        AbortSignal.timeout(60_000),
      ))
        if (object.metadata.name === name && (object.status as { phase?: string } | undefined)?.phase === 'Running') return;
    },
    async stop() {
      await registry.stop();
      await logs.stop();
    },
  });
}

describeBuilds('kubernetes', () => open(inject('kubeconfig')));

describe('builds on a real API server', () => {
  let test: BuildsUnderTest;
  beforeAll(async () => {
    test = await open(inject('kubeconfig'));
  });
  afterAll(() => test?.stop());

  it('streams the lines of a step while it runs, and leaves nothing when it is deleted', async () => {
    const spec = buildSpec(test.sources.endless, { env: { SECRET: 'hunter2' } });
    await buildUntilStarted(test.builds, spec);
    const labels = { 'build-id': spec.buildId };
    const count = async (): Promise<number[]> =>
      Promise.all(
        [kinds.pipelineRun, kinds.taskRun, kinds.pod, kinds.secret].map(
          async (kind) => (await test.cluster.list({ kind, namespace: 'paas-build', labels })).length,
        ),
      );
    expect(await count()).toEqual([1, 1, 1, 2]);
    await test.builds.deleteBuild(spec.buildId);
    await expect.poll(count).toEqual([0, 0, 0, 0]);
  });

  it('is lost with its pod, and is built again from its beginning', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    const watched = watchToEnd(test.builds, spec.buildId);
    await test.tekton.evict(taskRunName(spec.buildId), 'The node was low on resource: memory.');
    expect((await watched).outcome).toEqual({ status: 'lost' });
    const again = await buildToEnd(test.builds, { ...spec, source: sourceOf({ Procfile: 'web: a' }) });
    expect(again.outcome.status).toBe('succeeded');
  });

  it('keeps the claim of the cache busy while it runs, and frees it with its end', async () => {
    const spec = buildSpec(test.sources.endless);
    await buildUntilStarted(test.builds, spec);
    expect(await test.caches.deleteCache(spec.appId)).toBe(true);
    expect(await test.caches.readCache(spec.appId)).toEqual({ state: 'deleting' });
    await test.builds.deleteBuild(spec.buildId);
    await expect.poll(() => test.caches.readCache(spec.appId)).toBeUndefined();
  });

  it('builds from a Dockerfile', async () => {
    const { outcome } = await buildToEnd(test.builds, buildSpec(sourceOf({ Dockerfile: 'FROM alpine\nCMD ["/server"]\n' })));
    expect(outcome).toMatchObject({ status: 'succeeded', processes: { web: '/server' } });
  });
});

describe('builds on a cluster that is not prepared', () => {
  let running: TestCluster;
  let test: BuildsUnderTest;
  beforeAll(async () => {
    running = await startTestCluster(inject('clusterPrograms'), { controllers: false });
    test = await open(running.kubeconfig);
  });
  afterAll(async () => {
    await test?.stop();
    await running?.stop();
  });
  const plain = sourceOf({ Procfile: 'web: a' });

  it('names Tekton, whose definitions are missing', async () => {
    await expect(test.builds.startBuild(buildSpec(plain))).rejects.toThrow(
      'The cluster does not know the kind PipelineRun (tekton.dev/v1). Install Tekton Pipelines.',
    );
  });

  it('names the right that is missing', async () => {
    await running.kubectl(['apply', '--server-side', '-f', join(import.meta.dirname, 'cluster/definitions/tekton.yaml')]);
    await running.kubectl(['wait', '--for=condition=Established', 'crd', '--all']);
    await running.kubectl(['create', 'serviceaccount', 'paas', '--namespace', 'paas-build']);
    const token = (await running.kubectl(['create', 'token', 'paas', '--namespace', 'paas-build'])).trim();
    const kubeconfig = join(running.directory, 'builder');
    const admin = await readFile(running.kubeconfig, 'utf8');
    await writeFile(kubeconfig, admin.replace(running.token, token), { mode: 0o600 });
    const unprivileged = await openBuildsUnderTest({
      cluster: connectCluster({ kubeconfig }),
      registry: '127.0.0.1:1',
      collectsGarbage: false,
      print: async () => undefined,
      started: async () => undefined,
      stop: async () => undefined,
    });
    await expect(unprivileged.builds.cancelBuild(buildSpec(plain).buildId)).rejects.toThrow(
      /^The platform lacks the right to get the PipelineRun build-\S+ in the namespace paas-build\. Give its service account the verb `get` on `pipelineruns` \(tekton\.dev\) in the namespace paas-build\.$/,
    );
    await unprivileged.stop();
  });

  it('names the pod security level that does not admit the pods of Tekton', async () => {
    await running.kubectl(['create', 'serviceaccount', 'default', '--namespace', 'paas-build']);
    await running.kubectl(['label', 'namespace', 'paas-build', 'pod-security.kubernetes.io/enforce=restricted']);
    // As Tekton comes; a controller that started before its definitions has ended.
    await test.stop();
    test = await open(running.kubeconfig, false);
    await expect(buildToEnd(test.builds, buildSpec(plain))).rejects.toThrow(
      /^Kubernetes refused to create the pod of the build in the namespace paas-build: .*violates PodSecurity.* Set set-security-context in the ConfigMap feature-flags of Tekton to "true"/,
    );
  });

  it('is admitted at the level restricted where Tekton sets security contexts', async () => {
    await test.stop();
    test = await open(running.kubeconfig);
    const spec = buildSpec(plain);
    await test.builds.startBuild(spec);
    const selection = { kind: kinds.pod, namespace: 'paas-build', labels: { 'build-id': spec.buildId } };
    await expect.poll(() => test.cluster.list(selection)).toHaveLength(1);
  });
});
