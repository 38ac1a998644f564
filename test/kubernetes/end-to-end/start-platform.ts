/** A whole platform on a cluster: its processes beside the cluster, and in this process what a cluster of machines would have. */
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { stringify } from 'yaml';
import { gatewayFiles } from '#gateway/gateway-options.ts';
import type { Cluster, ClusterObject } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { connectCluster } from '#shared/platform/kubernetes/cluster/connect-cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { startFakeRegistry } from '#shared/platform/kubernetes/testing/fake-registry.ts';
import { startScriptedTekton } from '#shared/platform/kubernetes/testing/scripted-tekton.ts';
import { planProgram } from '#shared/platform/local/workloads/plan-program.ts';
import { createSharedGatewaysRouter } from '#shared/routing/gateway-router.ts';
import { openTestBuilds } from '#test/support/builds/test-builds.ts';
import { createTestDatabase } from '#test/support/database/test-database.ts';
import { makeDataDir } from '#test/support/platform/running-platform.ts';
import { type PartProcess, type ProcessKind, settingsOfParts, startPart } from '#test/support/platform/running-processes.ts';
import { freePort } from '#test/support/servers/free-port.ts';
import type { ClusterPrograms } from '../cluster/build-programs.ts';
import { startTestCluster, type TestCluster } from '../cluster/start-test-cluster.ts';
import { createBuilderSteps } from './builder-steps.ts';
import { serveKubeletLogs } from './kubelet-logs.ts';
import { startRouteReader } from './route-reader.ts';
import { startServiceProxy } from './service-proxy.ts';
import { type ContainerStart, type RunningContainer, startTestNode } from './test-node.ts';

export interface ClusterPlatform {
  readonly cluster: Cluster;
  readonly running: TestCluster;
  readonly baseUrl: string;
  readonly httpPort: number;
  /** What the processes of the platform have printed. */
  output(): string;
  stop(): Promise<void>;
}

const platformNamespace = 'paas-system';

export async function startClusterPlatform(programs: ClusterPrograms): Promise<ClusterPlatform> {
  await using undo = new AsyncDisposableStack();
  const running = await startTestCluster(programs, { kwok: false });
  undo.defer(() => running.stop());
  const { kubeconfig } = running;
  const cluster = connectCluster({ kubeconfig });
  for (const name of [platformNamespace, 'paas-build'])
    await cluster.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });

  const registry = await startFakeRegistry();
  undo.defer(() => registry.stop());
  const local = await openTestBuilds();
  undo.defer(() => local.stop());
  const steps = createBuilderSteps(cluster, local);
  const logs = await serveKubeletLogs(running.directory);
  undo.defer(() => logs.stop());

  const node = await startTestNode({ cluster, kubeconfig, logs, startContainer });
  undo.defer(() => node.stop());
  const tekton = startScriptedTekton({
    cluster,
    namespace: 'paas-build',
    collectsGarbage: false,
    // The script would wait for ever for a step that throws.
    runStep: (step) =>
      steps.runStep(step).catch(async (error: unknown) => {
        await step.print(`ERROR: ${error instanceof Error ? error.stack : String(error)}`);
        return { exitCode: 1 };
      }),
    print: async (pod, line) => logs.print(pod, line),
    started: untilRunning,
  });
  undo.defer(() => tekton.stop());

  const database = await createTestDatabase();
  undo.defer(() => database.close());
  const dataDir = await makeDataDir(true);
  undo.defer(() => rm(dataDir, { recursive: true, force: true }));
  const { settings: shared, httpPort } = await settingsOfParts(dataDir);
  const settings: Record<string, string> = {
    ...shared,
    PAAS_PLATFORM: 'kubernetes',
    PAAS_KUBECONFIG: kubeconfig,
    PAAS_KUBERNETES_NAMESPACE: platformNamespace,
    PAAS_KUBERNETES_ISSUER: 'ClusterIssuer/authority',
    PAAS_KUBERNETES_REPOSITORY: `${registry.host}/paas`,
    PAAS_INSECURE_REGISTRIES: registry.host,
    PAAS_DATABASE_URL: database.url,
    PAAS_DATABASE_AUTH: 'any',
  };
  const proxy = await startServiceProxy(node);
  undo.defer(() => proxy.stop());
  const ofWorker = { NODE_USE_ENV_PROXY: '1', HTTP_PROXY: proxy.url, NO_PROXY: 'localhost,127.0.0.1' };
  const parts: PartProcess[] = [];
  undo.defer(async () => {
    for (const part of parts.toReversed()) await part.end('SIGTERM');
  });
  // The gateway last: one that ran already would look for the API only in its next round.
  for (const kind of ['worker', 'api', 'sshd', 'gateway'] satisfies ProcessKind[]) {
    const part = startPart(kind, kind === 'worker' ? { ...settings, ...ofWorker } : settings);
    parts.push(part);
    await part.printed(`paas ${kind} is ready`);
  }
  const reader = startRouteReader(cluster, node, createSharedGatewaysRouter(gatewayFiles(dataDir).directory));
  undo.defer(() => reader.stop());

  const started = undo.move();
  return {
    cluster,
    running,
    baseUrl: `http://localhost:${httpPort}`,
    httpPort,
    output: () => parts.map(({ kind, output }) => `--- ${kind}\n${output()}`).join('\n'),
    stop: () => started.disposeAsync(),
  };

  /** The pods of builds are the scripted Tekton's; those of apps run what the builders made of their source. */
  async function startContainer({ pod, container, env, print }: ContainerStart): Promise<RunningContainer | undefined> {
    if (pod.metadata.labels?.['tekton.dev/taskRun'] !== undefined) return undefined;
    const imageUrl = steps.localImage(container.image);
    if (imageUrl === undefined) throw new Error(`The test node has no image ${container.image}.`);
    const port = await freePort();
    const image = await local.images.readImage(imageUrl);
    const appId = pod.metadata.labels?.['app-id'] as Parameters<typeof local.sandbox.ensureUid>[0];
    const program = {
      id: `pod-${randomUUID()}`,
      command: container.args?.at(-1) ?? 'false',
      env: { ...env, PORT: String(port) },
      survivesControlPlane: false,
    };
    const place = { uid: await local.sandbox.ensureUid(appId), network: undefined, layers: local.sandbox.layers };
    const child = await local.sandbox.spawn(planProgram(program, image, place), { stdout: 'pipe', stderr: 'pipe' });
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk) => String(chunk).trimEnd().split('\n').forEach(print));
    return {
      port,
      isReady: () =>
        fetch(`http://127.0.0.1:${port}/`).then(
          async (answer) => (await answer.body?.cancel(), true),
          () => false,
        ),
      exited: child.exited.then(({ code }) => code ?? 137),
      stop: () => local.sandbox.end(child.record),
    };
  }

  /** Also the volumes that its claims wait for: nothing provisions any. */
  async function untilRunning(pod: ClusterObject): Promise<void> {
    const { name, namespace = '', labels = {} } = pod.metadata;
    const { volumes = [] } = pod.spec as { volumes?: readonly { persistentVolumeClaim?: { claimName: string } }[] };
    for (const { persistentVolumeClaim } of volumes) {
      if (persistentVolumeClaim === undefined) continue;
      const { claimName } = persistentVolumeClaim;
      const claim = await cluster.read({ kind: kinds.persistentVolumeClaim, name: claimName, namespace });
      if (claim === undefined) continue;
      const claimRef = { name: claimName, namespace };
      const spec = {
        storageClassName: 'standard',
        capacity: { storage: '5Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/nowhere' },
        claimRef,
      };
      // A claim that was deleted and made again gets no volume of the one before.
      const volume = { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: `volume-${claim.metadata.uid}` }, spec };
      await running.kubectl(['apply', '-f', '-'], stringify(volume));
    }
    for await (const { object } of cluster.watch({ kind: kinds.pod, namespace, labels }, AbortSignal.timeout(120_000)))
      if (object.metadata.name === name && (object.status as { phase?: string } | undefined)?.phase === 'Running') return;
  }
}
