import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

export interface FileServer {
  /** `http://127.0.0.1:port` or with https. */
  readonly url: string;
  /** What is served, by path. */
  readonly files: Map<string, Uint8Array>;
  /** Of each request, in order. */
  readonly requests: readonly string[];
  /** From now on a file is begun and not finished, until the returned function is called. */
  hold(): () => void;
  close(): Promise<void>;
}

/** Files on loopback, by HTTPS where a certificate is given. */
export async function startFileServer(tls?: { certificate: string; key: string }): Promise<FileServer> {
  const files = new Map<string, Uint8Array>();
  const requests: string[] = [];
  let paused: Promise<void> | undefined;
  const serve: RequestListener = async (request, response) => {
    requests.push(request.url ?? '');
    const body = files.get(new URL(request.url ?? '/', 'http://localhost').pathname);
    if (body === undefined) return void response.writeHead(404).end();
    response.writeHead(200, { 'content-length': body.length });
    response.write(body.subarray(0, 10));
    await paused;
    response.end(body.subarray(10));
  };
  const server = tls === undefined ? createHttp(serve) : createHttps({ cert: tls.certificate, key: tls.key }, serve);
  const listening = await listenOnLoopback(server);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://${listening.host}`,
    files,
    requests,
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      return () => {
        paused = undefined;
        resolve();
      };
    },
    close: () => listening.close(),
  };
}
