import { constants, openSync } from 'node:fs';
import { chmod, readdir, rename, rm } from 'node:fs/promises';
import { connect, type Server } from 'node:net';
import { basename, dirname, join } from 'node:path';

/** Bytes that fit in the address of a unix socket (Linux: 108 with the final zero). */
const longestAddress = 107;

/** Handles of directories, kept open for the life of the process, since addresses refer to them. */
const directories = new Map<string, number>();

/**
 * The address to bind or connect to for a unix socket at `path`. A path that is too long is replaced by one through a handle
 * of its directory, which must exist. The result is valid in this process only: pass on `path` to others.
 */
export function reachableSocketPath(path: string): string {
  if (Buffer.byteLength(path) <= longestAddress) return path;
  const directory = dirname(path);
  const handle = directories.get(directory) ?? openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  directories.set(directory, handle);
  return `/proc/self/fd/${handle}/${basename(path)}`;
}

/**
 * Listens on a unix socket that only this user may open (mode 600). Replaces the file that a crashed process has left; the
 * caller makes sure that no running process listens there.
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  await rm(path, { force: true });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(reachableSocketPath(path), () => {
      server.off('error', reject);
      resolve();
    });
  });
  await chmod(path, 0o600);
}

/**
 * Listens on a unix socket whose name no other process uses, now or later. The file appears once connections are accepted, so that
 * whoever finds a file that refuses them knows that its process has ended. It is removed when the server closes.
 */
export async function listenOnOwnSocket(server: Server, path: string): Promise<void> {
  await listenOnSocket(server, `${path}.new`);
  await rename(`${path}.new`, path);
  server.once('close', () => void rm(path, { force: true }));
}

/** Removes the sockets that processes left which were killed. @param names of sockets that `listenOnOwnSocket` opened */
export async function removeDeadSockets(directory: string, names: RegExp): Promise<void> {
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    if (names.test(name) && (await refusesConnections(path))) await rm(path, { force: true });
  }
}

function refusesConnections(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(reachableSocketPath(path));
    socket.once('connect', () => {
      socket.destroy();
      resolve(false);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
