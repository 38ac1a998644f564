/** A node of the cluster whose pods are processes of this machine: what a kubelet does, as far as apps and their add-ons need it. */
import { KubeConfig } from '@kubernetes/client-node';
import { createApiRequests } from '#shared/platform/kubernetes/cluster/api-requests.ts';
import type { Cluster, ClusterObject, PodContainer } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { kinds } from '#shared/platform/kubernetes/cluster/kinds.ts';
import { objectPath } from '#shared/platform/kubernetes/cluster/object-path.ts';
import type { KubeletLogs } from './kubelet-logs.ts';

/** The parts of a container that the node looks at. */
export interface PodContainerSpec {
  name: string;
  image: string;
  command?: readonly string[];
  args?: readonly string[];
  env?: readonly { name: string; value?: string }[];
  envFrom?: readonly { secretRef?: { name: string } }[];
}

/** A container that is to be started. */
export interface ContainerStart {
  pod: ClusterObject;
  container: PodContainerSpec;
  /** Its variables, those from Secrets too; hosts of Services are replaced by addresses of this machine. */
  env: Readonly<Record<string, string>>;
  print(line: string): void;
}

/** A container that runs. */
export interface RunningContainer {
  /** At which it listens on the loopback. */
  port: number;
  /** Whether its readiness probe passes. */
  isReady(): Promise<boolean>;
  /** Resolves with its exit code. */
  exited: Promise<number>;
  stop(): Promise<void>;
}

export interface TestNodeOptions {
  cluster: Cluster;
  kubeconfig: string;
  logs: KubeletLogs;
  /** Undefined for a pod that somebody else plays: it only gets the phase Running. */
  startContainer(start: ContainerStart): Promise<RunningContainer | undefined>;
}

export interface TestNode {
  /** The loopback ports of the pods that a Service leads to and that are ready, by the name of the pod. */
  portsOf(service: string, namespace: string): Promise<ReadonlyMap<string, number>>;
  /** Of a pod that is ready. */
  portOf(pod: ClusterObject): number | undefined;
  stop(): Promise<void>;
}

const nodeName = 'local';
const room = { cpu: '512', memory: '2048Gi', 'ephemeral-storage': '100Ti', pods: '10000' };
const pollMilliseconds = 100;

export async function startTestNode(options: TestNodeOptions): Promise<TestNode> {
  const { cluster, logs } = options;
  const config = new KubeConfig();
  config.loadFromFile(options.kubeconfig);
  const requests = createApiRequests(config);
  const over = new AbortController();
  /** By uid. */
  const started = new Map<string, Promise<void>>();
  const running = new Map<string, RunningContainer>();
  const ready = new Map<string, number>();
  let address = 0;

  await register();
  const watching = (async () => {
    for await (const { type, object } of cluster.watch({ kind: kinds.pod }, over.signal)) {
      const { uid = '', deletionTimestamp } = object.metadata;
      if ((object.spec as { nodeName?: string } | undefined)?.nodeName !== nodeName && type !== 'DELETED') continue;
      if (type === 'DELETED' || deletionTimestamp !== undefined) void end(object, uid);
      else if (!started.has(uid)) started.set(uid, run(object, uid).catch(report));
    }
  })().catch(report);

  function report(error: unknown): void {
    if (!over.signal.aborted) process.stderr.write(`The test node: ${error instanceof Error ? error.stack : String(error)}\n`);
  }

  async function register(): Promise<void> {
    const labels = { 'kubernetes.io/hostname': nodeName, 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' };
    const send = async (method: 'POST' | 'PATCH', path: string, body: object): Promise<void> => {
      const response = await requests.send({
        method,
        path,
        body,
        contentType: method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
      await response.body?.cancel();
    };
    await send('POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, labels } });
    const now = new Date().toISOString().replace(/\.\d+Z/, 'Z');
    await send('PATCH', `/api/v1/nodes/${nodeName}/status`, {
      status: {
        allocatable: room,
        capacity: room,
        addresses: [{ type: 'InternalIP', address: '127.0.0.1' }],
        daemonEndpoints: { kubeletEndpoint: { Port: logs.port } },
        conditions: [
          { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastHeartbeatTime: now, lastTransitionTime: now },
        ],
      },
    });
    await send('PATCH', `/api/v1/nodes/${nodeName}`, { spec: { taints: null } });
  }

  async function run(pod: ClusterObject, uid: string): Promise<void> {
    const { containers, restartPolicy } = pod.spec as { containers: PodContainerSpec[]; restartPolicy?: string };
    const [container] = containers;
    if (container === undefined) return;
    const { name, namespace = '' } = pod.metadata;
    address += 1;
    const podIP = `10.99.${Math.floor(address / 250)}.${(address % 250) + 1}`;
    const startedAt = new Date().toISOString();
    const place: PodContainer = { namespace, name, container: container.name };
    const setStatus = async (phase: string, state: object, isReady: boolean): Promise<void> => {
      const status = isReady ? 'True' : 'False';
      await cluster.patch(
        { kind: kinds.pod, name, namespace },
        {
          status: {
            phase,
            podIP,
            podIPs: [{ ip: podIP }],
            hostIP: '127.0.0.1',
            startTime: startedAt.replace(/\.\d+Z/, 'Z'),
            conditions: ['Initialized', 'ContainersReady', 'Ready'].map((type) => ({
              type,
              status: type === 'Initialized' ? 'True' : status,
              lastTransitionTime: new Date().toISOString().replace(/\.\d+Z/, 'Z'),
            })),
            containerStatuses: [
              { name: container.name, image: container.image, imageID: container.image, ready: isReady, restartCount: 0, state },
            ],
          },
        },
        'status',
      );
    };
    const print = (line: string): void => logs.print(place, line);
    const process = await options.startContainer({ pod, container, env: await readEnvironment(pod, container), print });
    if (process === undefined) {
      await cluster.patch({ kind: kinds.pod, name, namespace }, { status: { phase: 'Running', podIP } }, 'status');
      return;
    }
    running.set(uid, process);
    await setStatus('Running', { running: { startedAt } }, false);
    let code: number | undefined;
    const exited = process.exited.then((value) => {
      code = value;
      ready.delete(uid);
      logs.end(place);
    });
    const isService = restartPolicy !== 'Never';
    while (isService && code === undefined && !over.signal.aborted && !(await process.isReady()))
      await new Promise((resolve) => setTimeout(resolve, pollMilliseconds));
    if (isService && code === undefined && running.has(uid)) {
      ready.set(uid, process.port);
      await setStatus('Running', { running: { startedAt } }, true);
    }
    await exited;
    const terminated = {
      exitCode: code ?? 0,
      reason: code === 0 ? 'Completed' : 'Error',
      startedAt,
      finishedAt: new Date().toISOString(),
    };
    if (over.signal.aborted || !running.has(uid)) return;
    await setStatus(isService ? 'Running' : code === 0 ? 'Succeeded' : 'Failed', { terminated }, false);
  }

  /** As a kubelet does: the object goes when nothing of the pod runs any more. */
  async function end({ metadata: { name, namespace = '' } }: ClusterObject, uid: string): Promise<void> {
    const process = running.get(uid);
    running.delete(uid);
    ready.delete(uid);
    await process?.stop();
    const path = objectPath({ kind: kinds.pod, name, namespace });
    const response = await requests.send({ method: 'DELETE', path, body: { gracePeriodSeconds: 0, preconditions: { uid } } });
    await response.body?.cancel();
  }

  async function readEnvironment(
    pod: ClusterObject,
    { env = [], envFrom = [] }: PodContainerSpec,
  ): Promise<Record<string, string>> {
    const { namespace = '' } = pod.metadata;
    const values: Record<string, string> = {};
    for (const { secretRef } of envFrom) {
      if (secretRef === undefined) continue;
      const secret = await cluster.read({ kind: kinds.secret, name: secretRef.name, namespace });
      if (secret === undefined) throw new Error(`The pod ${pod.metadata.name} wants the Secret ${secretRef.name}.`);
      for (const [name, value] of Object.entries(secret.data ?? {})) values[name] = Buffer.from(value, 'base64').toString();
    }
    for (const { name, value = '' } of env) values[name] = value;
    return values;
  }

  const portOf = ({ metadata: { uid = '', deletionTimestamp } }: ClusterObject): number | undefined =>
    deletionTimestamp === undefined ? ready.get(uid) : undefined;

  async function portsOf(service: string, namespace: string): Promise<ReadonlyMap<string, number>> {
    const found = await cluster.read({ kind: kinds.service, name: service, namespace });
    const { selector } = (found?.spec ?? {}) as { selector?: Record<string, string> };
    if (selector === undefined) return new Map();
    const pods = await cluster.list({ kind: kinds.pod, namespace, labels: selector });
    return new Map(pods.flatMap((pod) => (portOf(pod) === undefined ? [] : [[pod.metadata.name, portOf(pod) ?? 0] as const])));
  }

  return {
    portsOf,
    portOf,
    async stop() {
      over.abort();
      await watching;
      for (const process of running.values()) await process.stop();
      await Promise.all(started.values());
    },
  };
}
