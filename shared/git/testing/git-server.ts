import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ApplyPush, GitStorage } from '#shared/git/git-storage.ts';
import type { RepositoryId } from '#shared/ids.ts';

/** Serves a git storage to stock git. */
export interface GitTestServer {
  /** Address for a stock git client that allows the `ext` protocol. */
  url(repositoryId: RepositoryId): string;
  /** Exit statuses, or errors, of the sessions that have ended, the oldest first. */
  readonly statuses: readonly (number | Error)[];
  close(): Promise<void>;
}

const bridge = fileURLToPath(new URL('./bridge.mjs', import.meta.url));

/** Serves repositories on a socket in `directory`. There are only pipes between git and the storage. */
export async function serveGit(
  storage: GitStorage,
  applyPushTo: (repositoryId: RepositoryId) => ApplyPush,
  directory: string,
  headRef = 'refs/heads/main',
): Promise<GitTestServer> {
  const statuses: (number | Error)[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    serve(socket).then(
      (status) => statuses.push(status),
      (error: unknown) => statuses.push(error instanceof Error ? error : new Error(String(error))),
    );
  });
  const serve = async (socket: Socket): Promise<number> => {
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    socket.on('error', () => gone.abort());
    const { first, rest } = await takeLine(socket);
    const { service, repository, protocol } = JSON.parse(first) as { service: string; repository: string; protocol: string };
    const opened = { repositoryId: repository as RepositoryId, headRef };
    const stream = { input: rest, write: (chunk: Uint8Array) => write(socket, chunk), protocol, clientGone: gone.signal };
    try {
      return service === 'receive-pack'
        ? (await storage.server.receivePack(opened, stream, applyPushTo(opened.repositoryId))).exitStatus
        : await storage.server.uploadPack(opened, stream);
    } finally {
      socket.end();
    }
  };
  const path = join(directory, 'git.sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  return {
    statuses,
    url: (repositoryId) => `ext::${process.execPath} ${bridge} ${path} %s ${repositoryId}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function write(socket: Socket, chunk: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}

async function takeLine(socket: Socket): Promise<{ first: string; rest: AsyncIterable<Uint8Array> }> {
  // A client closes its side when it has sent everything. Ours must stay open for the answer.
  const chunks = socket.iterator({ destroyOnReturn: false }) as AsyncIterator<Buffer>;
  let have = Buffer.alloc(0);
  while (!have.includes(10)) {
    const next = await chunks.next();
    if (next.done === true) throw new Error('the bridge sent no request');
    have = Buffer.concat([have, next.value]);
  }
  const end = have.indexOf(10);
  const left = have.subarray(end + 1);
  return {
    first: have.toString('utf8', 0, end),
    rest: (async function* () {
      if (left.length > 0) yield left;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
    })(),
  };
}
