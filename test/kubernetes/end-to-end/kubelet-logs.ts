import { readFile } from 'node:fs/promises';
import { createServer } from 'node:https';
import { join } from 'node:path';
import type { PodContainer } from '#shared/platform/kubernetes/cluster/cluster.ts';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

/** What containers print, and the port at which the API server asks a kubelet for it. */
export interface KubeletLogs {
  readonly port: number;
  print(pod: PodContainer, line: string): void;
  /** The container has ended: whoever follows its lines has them all. */
  end(pod: PodContainer): void;
  stop(): Promise<void>;
}

interface Log {
  lines: { time: string; text: string }[];
  ended: boolean;
  changed: () => void;
}

const keyOf = ({ namespace, name, container }: PodContainer): string => `${namespace}/${name}/${container}`;

/** @param directory of the cluster: its API server has made a certificate there */
export async function serveKubeletLogs(directory: string): Promise<KubeletLogs> {
  const logs = new Map<string, Log>();
  const logOf = (key: string): Log => {
    const known = logs.get(key) ?? { lines: [], ended: false, changed: () => undefined };
    logs.set(key, known);
    return known;
  };
  const files = ['apiserver.crt', 'apiserver.key'].map((name) => readFile(join(directory, 'certificates', name)));
  const [cert, key] = await Promise.all(files);
  const server = createServer({ ...(cert && { cert }), ...(key && { key }) }, (request, response) => {
    const url = new URL(request.url ?? '/', 'https://kubelet');
    const [, place] = /^\/containerLogs\/([^/]+\/[^/]+\/[^/]+)$/.exec(url.pathname) ?? [];
    if (place === undefined) return void response.writeHead(404).end();
    const log = logOf(place);
    const tail = Number(url.searchParams.get('tailLines') ?? Number.POSITIVE_INFINITY);
    let written = Math.max(0, log.lines.length - tail);
    response.writeHead(200, { 'content-type': 'text/plain' });
    const write = (): void => {
      for (const { time, text } of log.lines.slice(written))
        response.write(url.searchParams.get('timestamps') === 'true' ? `${time} ${text}\n` : `${text}\n`);
      written = log.lines.length;
      if (log.ended || url.searchParams.get('follow') !== 'true') response.end();
    };
    const before = log.changed;
    log.changed = () => {
      before();
      if (!response.destroyed && !response.writableEnded) write();
    };
    write();
  });
  const listening = await listenOnLoopback(server);
  return {
    port: listening.port,
    print(pod, text) {
      const log = logOf(keyOf(pod));
      log.lines.push({ time: new Date().toISOString(), text });
      log.changed();
    },
    end(pod) {
      const log = logOf(keyOf(pod));
      log.ended = true;
      log.changed();
    },
    stop: () => listening.close(),
  };
}
