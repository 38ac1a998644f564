import { readFile, readlink, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** A running PostgreSQL server of one cluster directory. */
export interface Postmaster {
  pid: number;
  port: number;
  /** False while it starts, recovers or stops. */
  ready: boolean;
}

const pollMilliseconds = 10;

/** The live server of `cluster`, whoever started it; undefined when none runs, whatever files a crash has left. */
export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const content = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  const lines = content.split('\n');
  const pid = Number(lines[0]);
  const port = Number(lines[3]);
  if (!Number.isInteger(pid) || pid <= 0 || !(await isPostmasterOf(cluster, pid))) return undefined;
  return { pid, port, ready: lines[7]?.trim() === 'ready' };
}

/** The server is gone when this resolves. False when it did not end in time. */
export async function waitForEnd(cluster: string, pid: number, milliseconds: number): Promise<boolean> {
  const deadline = performance.now() + milliseconds;
  while (await isPostmasterOf(cluster, pid)) {
    if (performance.now() > deadline) return false;
    await delay(pollMilliseconds);
  }
  return true;
}

/** Polls until the server accepts connections; undefined when `failed` says that it never will, or the time is over. */
export async function waitUntilReady(
  cluster: string,
  failed: () => boolean | Promise<boolean>,
  milliseconds: number,
): Promise<Postmaster | undefined> {
  const deadline = performance.now() + milliseconds;
  while (!(await failed()) && performance.now() < deadline) {
    const postmaster = await findPostmaster(cluster);
    if (postmaster?.ready) return postmaster;
    await delay(pollMilliseconds);
  }
  return undefined;
}

/** Pids are reused after a crash or a reboot: the server is known by its program and by the directory it works in. */
async function isPostmasterOf(cluster: string, pid: number): Promise<boolean> {
  try {
    const [program, workingDirectory, directory] = await Promise.all([
      readlink(`/proc/${pid}/exe`),
      stat(`/proc/${pid}/cwd`),
      stat(cluster),
    ]);
    const same = workingDirectory.ino === directory.ino && workingDirectory.dev === directory.dev;
    return same && basename(program).replace(' (deleted)', '') === 'postgres';
  } catch {
    return false;
  }
}
