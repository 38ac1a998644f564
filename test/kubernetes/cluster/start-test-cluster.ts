import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, fetch } from 'undici';
import { runChecked } from '#test/support/run-program.ts';
import { freePort } from '#test/support/servers/free-port.ts';
import { clustersDirectory, removeAbandonedClusters } from './abandoned-clusters.ts';
import type { ClusterPrograms } from './build-programs.ts';
import { type ClusterProcess, startClusterProcess } from './cluster-process.ts';
import { installControllers } from './install-controllers.ts';

/** A Kubernetes of its own on loopback: a real API server and real controllers; nodes and pods are kwok's. */
export interface TestCluster {
  /** Of an administrator. */
  readonly kubeconfig: string;
  readonly url: string;
  readonly token: string;
  readonly directory: string;
  /** Ends by the end of the cluster; `stop` and `start` of one of its programs are for tests of outages. */
  readonly apiServer: { stop(): Promise<void>; start(): Promise<void> };
  kubectl(args: readonly string[], input?: string): Promise<string>;
  stop(): Promise<void>;
}

/** What runs beside etcd and the API server. */
export interface TestClusterOptions {
  /** Also the controller manager, the scheduler, a node of kwok's, cert-manager and Argo Rollouts. False: nothing moves. */
  controllers?: boolean;
  /** False: no node of kwok's, and nothing that plays pods. */
  kwok?: boolean;
}

/** Starts a cluster; it is ready when the promise resolves. Any number may run at the same time. */
export async function startTestCluster(
  programs: ClusterPrograms,
  { controllers = true, kwok = true }: TestClusterOptions = {},
): Promise<TestCluster> {
  await removeAbandonedClusters();
  await mkdir(clustersDirectory, { recursive: true });
  const directory = await mkdtemp(join(clustersDirectory, 'cluster-'));
  await writeFile(join(directory, 'owner'), String(process.pid));
  const [etcdPort, peerPort, apiPort] = await Promise.all([freePort(), freePort(), freePort()]);
  const url = `https://127.0.0.1:${apiPort}`;
  const token = randomBytes(16).toString('hex');
  const kubeconfig = join(directory, 'kubeconfig');
  const account = join(directory, 'service-accounts');
  await writeFile(join(directory, 'tokens.csv'), `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  await writeFile(kubeconfig, describeConnection(url, token), { mode: 0o600 });
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  await writeFile(`${account}.key`, keys.privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 });
  await writeFile(`${account}.pub`, keys.publicKey.export({ type: 'spki', format: 'pem' }));

  const running: ClusterProcess[] = [];
  const start = async (name: string, args: readonly string[]): Promise<ClusterProcess> => {
    const started = await startClusterProcess({ name, command: programs.cluster, args: [name, ...args], directory });
    running.push(started);
    return started;
  };
  const stop = async (): Promise<void> => {
    for (const process of running.toReversed()) await process.stop();
    await rm(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  const insecure = new Agent({ connect: { rejectUnauthorized: false } });
  const isReady = async (): Promise<boolean> =>
    (await fetch(`${url}/readyz`, { headers: { authorization: `Bearer ${token}` }, dispatcher: insecure })).ok;
  const startApiServer = async (): Promise<ClusterProcess> => {
    const server = await start('kube-apiserver', apiServerArguments({ directory, account, etcdPort, apiPort }));
    await server.untilReady(isReady);
    return server;
  };

  try {
    const client = `http://127.0.0.1:${etcdPort}`;
    const etcd = await start('etcd', [
      ...['--data-dir', join(directory, 'etcd'), '--unsafe-no-fsync', '--log-level', 'warn'],
      ...['--listen-client-urls', client, '--advertise-client-urls', client],
      ...['--listen-peer-urls', `http://127.0.0.1:${peerPort}`],
    ]);
    await etcd.untilReady(async () => (await fetch(`${client}/health`)).ok);
    let apiServer = await startApiServer();
    const cluster: TestCluster = {
      kubeconfig,
      url,
      token,
      directory,
      apiServer: {
        stop: () => apiServer.stop(),
        async start() {
          apiServer = await startApiServer();
        },
      },
      async kubectl(args, input) {
        const options = input === undefined ? {} : { input };
        return (await runChecked(programs.cluster, ['kubectl', '--kubeconfig', kubeconfig, ...args], options)).stdout;
      },
      async stop() {
        await stop();
        await insecure.close();
      },
    };
    if (controllers) {
      const [managerPort, schedulerPort] = [await freePort(), await freePort()];
      const certificates = join(directory, 'certificates');
      const common = [
        '--kubeconfig',
        kubeconfig,
        '--bind-address',
        '127.0.0.1',
        '--cert-dir',
        certificates,
        '--leader-elect=false',
      ];
      await start('kube-controller-manager', [
        ...common,
        // On a busy machine the heart of a node beats late.
        ...['--secure-port', String(managerPort), '--cluster-name', 'test', '--node-monitor-grace-period', '1h'],
        ...['--service-account-private-key-file', `${account}.key`, '--root-ca-file', join(certificates, 'apiserver.crt')],
        ...['--controllers', '*,-nodeipam,-node-route-controller,-cloud-node-lifecycle-controller,-service-lb-controller'],
      ]);
      await start('kube-scheduler', [...common, '--secure-port', String(schedulerPort)]);
      running.push(...(await installControllers(cluster, programs, kwok)));
    }
    return cluster;
  } catch (error) {
    await stop();
    throw error;
  }
}

interface ApiServer {
  directory: string;
  account: string;
  etcdPort: number;
  apiPort: number;
}

function apiServerArguments({ directory, account, etcdPort, apiPort }: ApiServer): string[] {
  return [
    ...['--etcd-servers', `http://127.0.0.1:${etcdPort}`],
    ...['--bind-address', '127.0.0.1', '--secure-port', String(apiPort), '--advertise-address', '127.0.0.1'],
    ...['--cert-dir', join(directory, 'certificates'), '--token-auth-file', join(directory, 'tokens.csv')],
    ...['--service-account-issuer', `https://127.0.0.1:${apiPort}`, '--service-account-key-file', `${account}.pub`],
    ...['--service-account-signing-key-file', `${account}.key`, '--authorization-mode', 'Node,RBAC'],
    ...['--service-cluster-ip-range', '10.0.0.0/16', '--endpoint-reconciler-type', 'none'],
    ...['--kubelet-preferred-address-types', 'InternalIP', '--profiling=false'],
  ];
}

function describeConnection(server: string, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'admin', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    'current-context': 'test',
  });
}
