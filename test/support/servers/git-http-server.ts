import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runChecked } from '#test/support/run-program.ts';

export interface GitHttpServer {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** A new bare repository; its path, for stock git to push to. */
  createRepository(name: string): Promise<string>;
  /** From now on nobody is answered, until the returned function is called: then all who wait are. */
  hold(): () => void;
  /** From now on only whoever sends this is answered, as `user:password`; null: everybody. */
  protect(login: string | null): void;
  close(): Promise<void>;
}

/** What git itself offers over smart HTTP, on loopback: `git http-backend` behind a server of a few lines. */
export async function startGitHttpServer(): Promise<GitHttpServer> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-git-host-'));
  const running = new Set<ChildProcess>();
  let paused: Promise<void> | undefined;
  let login: string | null = null;
  const server = createServer(async (request, response) => {
    await paused;
    const { authorization } = request.headers;
    if (login !== null && authorization !== `Basic ${Buffer.from(login).toString('base64')}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      return;
    }
    const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
    const backend = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: process.env['PATH'] ?? '',
        GIT_PROJECT_ROOT: directory,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
        PATH_INFO: pathname,
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method ?? '',
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        REMOTE_ADDR: '127.0.0.1',
      },
    });
    running.add(backend);
    backend.on('close', () => running.delete(backend));
    backend.stdin.on('error', () => undefined);
    request.pipe(backend.stdin);
    let head = Buffer.alloc(0);
    backend.stdout.on('data', (chunk: Buffer) => {
      if (response.headersSent) return response.write(chunk);
      head = Buffer.concat([head, chunk]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0) return false;
      const lines = head.toString('latin1', 0, end).split('\r\n');
      const headers = lines.map((line) => line.split(': ', 2) as [string, string]);
      const status = headers.find(([name]) => name === 'Status')?.[1] ?? '200';
      response.writeHead(Number.parseInt(status, 10), Object.fromEntries(headers.filter(([name]) => name !== 'Status')));
      return response.write(head.subarray(end + 4));
    });
    backend.stdout.on('end', () => response.end());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async createRepository(name) {
      const path = join(directory, name);
      await runChecked('git', ['init', '-q', '--bare', '-b', 'main', path]);
      return path;
    },
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      paused = promise;
      return resolve;
    },
    protect(wanted) {
      login = wanted;
    },
    async close() {
      for (const backend of running) backend.kill();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}
