import { createServer, request as send } from 'node:http';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';
import type { TestNode } from './test-node.ts';

/** The network of the cluster for a process outside of it: an HTTP proxy that knows the names of Services. */
export async function startServiceProxy(node: TestNode): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((incoming, outgoing) => {
    void (async () => {
      const url = new URL(incoming.url ?? '/', 'http://nowhere');
      const [service = '', namespace = ''] = url.hostname.split('.');
      const [port] = [...(await node.portsOf(service, namespace)).values()];
      if (port === undefined) return void outgoing.destroy();
      const { method, headers } = incoming;
      const asked = send({ host: '127.0.0.1', port, path: `${url.pathname}${url.search}`, method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(outgoing);
      });
      asked.on('error', () => outgoing.destroy());
      incoming.pipe(asked);
    })().catch(() => outgoing.destroy());
  });
  const listening = await listenOnLoopback(server);
  return {
    url: `http://${listening.host}`,
    stop: () => listening.close(),
  };
}
