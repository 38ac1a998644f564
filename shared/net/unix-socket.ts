import { constants, openSync } from 'node:fs';
import { chmod, rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { basename, dirname } from 'node:path';

/** Bytes that fit in a unix socket's address (Linux: 108 with the closing zero). */
const longestAddress = 107;

/** Directories held open for as long as the process lives: addresses lead through them. */
const directories = new Map<string, number>();

/**
 * The address to bind or connect to for a unix socket at `path`, however deep the data directory is: where the path is
 * too long, it goes by way of a handle on its directory. Good in this process only, so hand on `path` and not this. The
 * directory must exist.
 */
export function reachableSocketPath(path: string): string {
  if (Buffer.byteLength(path) <= longestAddress) return path;
  const directory = dirname(path);
  const handle = directories.get(directory) ?? openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  directories.set(directory, handle);
  return `/proc/self/fd/${handle}/${basename(path)}`;
}

/**
 * Listens on a unix socket that only this user may use, in place of one that a crashed process has left behind. Making
 * sure that no living process listens there is the caller's business.
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
