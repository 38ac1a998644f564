import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { runChecked } from '#test/support/run-program.ts';
import { listenOnLoopback } from '#test/support/servers/listen-on-loopback.ts';

export interface GitHttpServer {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** A new bare repository; its path, for stock git to push to. */
  createRepository(name: string): Promise<string>;
  /** From now on nobody is answered, until the returned function is called: then all who wait are. */
  hold(): () => void;
  /** From now on only whoever sends this is answered, as `user:password`; null: everybody. */
  protect(login: string | null): void;
  /** Contents that Git LFS has for all repositories, by their SHA-256. */
  readonly largeFiles: Map<string, Buffer>;
  addLargeFile(content: string): void;
  close(): Promise<void>;
}

/** What git itself offers over smart HTTP, on loopback: `git http-backend` behind a server of a few lines. */
export async function startGitHttpServer(): Promise<GitHttpServer> {
  const directory = await mkdtemp(join(tmpdir(), 'paas-git-host-'));
  const running = new Set<ChildProcess>();
  let paused: Promise<void> | undefined;
  let login: string | null = null;
  const largeFiles = new Map<string, Buffer>();
  const server = createServer(async (request, response) => {
    await paused;
    const { authorization } = request.headers;
    if (login !== null && authorization !== `Basic ${Buffer.from(login).toString('base64')}`) {
      response.writeHead(401, { 'www-authenticate': 'Basic' }).end();
      return;
    }
    if (/\/info\/lfs\//.test(request.url ?? '')) return answerLfs(request, response, largeFiles);
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
  const listening = await listenOnLoopback(server);
  return {
    url: `http://${listening.host}`,
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
    largeFiles,
    addLargeFile(content) {
      largeFiles.set(createHash('sha256').update(content).digest('hex'), Buffer.from(content));
    },
    async close() {
      for (const backend of running) backend.kill();
      await listening.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Downloads by the batch API of Git LFS, each from an address beside it. */
async function answerLfs(request: IncomingMessage, response: ServerResponse, files: ReadonlyMap<string, Buffer>): Promise<void> {
  const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
  if (!url.pathname.endsWith('/objects/batch')) {
    const content = files.get(url.pathname.split('/').at(-1) ?? '');
    response.writeHead(content === undefined ? 404 : 200).end(content);
    return;
  }
  const { objects } = (await json(request)) as { objects: { oid: string; size: number }[] };
  const answers = objects.map((object) =>
    files.has(object.oid)
      ? { ...object, actions: { download: { href: new URL(`./${object.oid}`, url).href } } }
      : { ...object, error: { code: 404, message: 'Object does not exist' } },
  );
  response.writeHead(200, { 'content-type': 'application/vnd.git-lfs+json' });
  response.end(JSON.stringify({ transfer: 'basic', objects: answers }));
}
