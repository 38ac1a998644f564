import { readFile, writeFile } from 'node:fs/promises';
import { createServer, request, type ServerResponse } from 'node:http';
import { Agent, request as secureRequest } from 'node:https';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

/** A request to the API server. */
export interface SeenRequest {
  /** Milliseconds since 1970. */
  at: number;
  method: string;
  /** With its query. */
  path: string;
  isWatch: boolean;
}

/** What becomes of a request instead of its answer: an answer of the proxy, a cut connection, or a delay before the real one. */
export type Fault =
  | { status: number; headers?: Readonly<Record<string, string>>; reason?: string }
  | { cut: true }
  | { delayMilliseconds: number };

/** Stands between a client and the API server of a test cluster. */
export interface ApiProxy {
  /** Leads to the proxy, with the credentials of the cluster's. */
  readonly kubeconfig: string;
  readonly requests: readonly SeenRequest[];
  /** Decides about each request from now on. */
  fault: (seen: SeenRequest) => Fault | undefined;
  /** Ends every open watch without a word. */
  cutWatches(): void;
  close(): Promise<void>;
}

/** @param kubeconfig path of a kubeconfig in JSON, as `startTestCluster` writes it; the proxy's is written beside it */
export async function startApiProxy(kubeconfig: string, name: string): Promise<ApiProxy> {
  const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as { clusters: { cluster: { server: string } }[] };
  const upstream = new URL(config.clusters[0]?.cluster.server ?? '');
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const requests: SeenRequest[] = [];
  const watches = new Set<ServerResponse>();

  const server = createServer((incoming, outgoing) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const seen = { at: Date.now(), method, path: url, isWatch: /[?&]watch=true/.test(url) };
    requests.push(seen);
    const fault = proxy.fault(seen);
    if (fault !== undefined && 'cut' in fault) return void incoming.destroy();
    if (fault !== undefined && 'status' in fault) {
      incoming.resume();
      const { status, reason = 'InternalError', headers: extra = {} } = fault;
      outgoing.writeHead(status, { 'content-type': 'application/json', ...extra });
      outgoing.end(
        JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message: `fault ${status}`, reason, code: status }),
      );
      return;
    }
    if (seen.isWatch) {
      watches.add(outgoing);
      outgoing.on('close', () => watches.delete(outgoing));
    }
    const forward = (): void => {
      const send = upstream.protocol === 'https:' ? secureRequest : request;
      const onward = send(
        {
          host: upstream.hostname,
          port: upstream.port,
          method,
          path: url,
          headers: { ...headers, host: upstream.host },
          ...(upstream.protocol === 'https:' ? { agent } : {}),
        },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
          answer.on('error', () => outgoing.destroy());
        },
      );
      onward.on('error', () => outgoing.destroy());
      outgoing.on('close', () => onward.destroy());
      incoming.pipe(onward);
    };
    if (fault === undefined) forward();
    else setTimeout(forward, fault.delayMilliseconds);
  });
  const listening = await listenOnLoopback(server);
  const path = `${kubeconfig}-${name}`;
  const [first] = config.clusters;
  if (first !== undefined) Object.assign(first.cluster, { server: `http://${listening.host}` });
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  const proxy: ApiProxy = {
    kubeconfig: path,
    requests,
    fault: () => undefined,
    cutWatches() {
      for (const watch of watches) watch.destroy();
    },
    async close() {
      await listening.close();
      agent.destroy();
    },
  };
  return proxy;
}
