import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { freePort } from '#test/support/servers/free-port.ts';
import type { ClusterPrograms } from './build-programs.ts';
import { type ClusterProcess, startClusterProcess } from './cluster-process.ts';
import type { TestCluster } from './start-test-cluster.ts';

/** Installs all CRDs, then starts kwok with one node if wanted, cert-manager and Argo Rollouts. Returns what it started. */
export async function installControllers(
  cluster: Pick<TestCluster, 'kubectl' | 'kubeconfig' | 'directory'>,
  programs: ClusterPrograms,
  hasKwok: boolean,
): Promise<ClusterProcess[]> {
  const { directory, kubeconfig } = cluster;
  for (const folder of programs.definitions) await cluster.kubectl(['apply', '--server-side', '-f', folder]);
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
  await cluster.kubectl(['apply', '-f', '-'], stringifyAll(surroundings(programs)));
  // A node that exists before kwok runs would keep an empty address.
  const kwok = hasKwok ? [await startKwok(cluster, programs)] : [];
  if (hasKwok) await cluster.kubectl(['apply', '-f', '-'], stringifyAll([node]));
  return [
    ...kwok,
    await startClusterProcess({
      name: 'cert-manager',
      command: programs.certManager,
      args: [],
      directory,
      env: { KUBECONFIG: kubeconfig },
    }),
    await startClusterProcess({
      name: 'rollouts-controller',
      command: programs.rollouts,
      args: [
        ...['--kubeconfig', kubeconfig, '--namespace', 'argo-rollouts', '--leader-elect=false', '--loglevel', 'warn'],
        ...['--metricsPort', String(await freePort()), '--healthzPort', String(await freePort())],
      ],
      directory,
      // The plugin that the controller starts inherits this.
      env: { KUBECONFIG: kubeconfig },
    }),
  ];
}

/** kwok plays the kubelet: pods come up at once, `logs` returns the lines of `pods.log`. */
async function startKwok(
  { directory, kubeconfig }: Pick<TestCluster, 'kubeconfig' | 'directory'>,
  { cluster, stages }: ClusterPrograms,
): Promise<ClusterProcess> {
  const port = await freePort();
  const podLog = join(directory, 'pods.log');
  const settings = join(directory, 'kwok.yaml');
  await writeFile(podLog, '');
  const logs = {
    apiVersion: 'kwok.x-k8s.io/v1alpha1',
    kind: 'ClusterLogs',
    metadata: { name: 'logs' },
    spec: { logs: [{ logsFile: podLog, follow: true }] },
  };
  await writeFile(settings, `${await readFile(stages, 'utf8')}\n---\n${stringify(logs)}`);
  const certificates = join(directory, 'certificates');
  return startClusterProcess({
    name: 'kwok',
    command: cluster,
    args: [
      ...['kwok', '--kubeconfig', kubeconfig, '--manage-all-nodes=true', '--config', settings, '--enable-crds=Logs'],
      ...['--node-ip', '127.0.0.1', '--node-port', String(port), '--server-address', `127.0.0.1:${port}`],
      ...['--tls-cert-file', join(certificates, 'apiserver.crt'), '--tls-private-key-file', join(certificates, 'apiserver.key')],
    ],
    directory,
  });
}

const room = { cpu: '512', memory: '2048Gi', 'ephemeral-storage': '100Ti', pods: '10000' };

const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'kwok-1',
    annotations: { 'kwok.x-k8s.io/node': 'fake', 'node.alpha.kubernetes.io/ttl': '0' },
    labels: { 'kubernetes.io/hostname': 'kwok-1', 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64', type: 'kwok' },
  },
  status: { allocatable: room, capacity: room },
};

/** What an operator has on the cluster before the platform comes: namespaces, a storage class, an issuer, a Gateway. */
function surroundings({ trafficRouter }: ClusterPrograms): object[] {
  const namespace = (name: string): object => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
  const issuer = (name: string, spec: object): object => ({
    apiVersion: 'cert-manager.io/v1',
    kind: 'ClusterIssuer',
    metadata: { name },
    spec,
  });
  const plugins = [{ name: 'argoproj-labs/gatewayAPI', location: `file://${trafficRouter}` }];
  return [
    ...['argo-rollouts', 'cert-manager', 'gateway'].map(namespace),
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'argo-rollouts-config', namespace: 'argo-rollouts' },
      data: { trafficRouterPlugins: stringify(plugins) },
    },
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'standard', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    },
    issuer('self-signed', { selfSigned: {} }),
    {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Certificate',
      metadata: { name: 'authority', namespace: 'cert-manager' },
      spec: {
        isCA: true,
        commonName: 'Authority of the tests',
        secretName: 'authority',
        privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
        issuerRef: { name: 'self-signed', kind: 'ClusterIssuer' },
      },
    },
    issuer('authority', { ca: { secretName: 'authority' } }),
    {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'Gateway',
      metadata: { name: 'paas', namespace: 'gateway' },
      spec: {
        gatewayClassName: 'test',
        listeners: [{ name: 'http', protocol: 'HTTP', port: 80, allowedRoutes: { namespaces: { from: 'All' } } }],
        allowedListeners: { namespaces: { from: 'All' } },
      },
    },
  ];
}

const stringifyAll = (objects: readonly object[]): string => objects.map((object) => stringify(object)).join('---\n');
