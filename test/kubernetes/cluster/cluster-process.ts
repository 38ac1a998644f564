import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A program of the cluster that runs. */
export interface ClusterProcess {
  readonly pid: number;
  /**
   * Resolves once `ready` does.
   * @throws Error with the end of its log when it has ended before
   */
  untilReady(ready: () => Promise<boolean>): Promise<void>;
  /** Resolves when it has ended; after ten seconds it is killed. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export interface ClusterProcessOptions {
  name: string;
  command: string;
  args: readonly string[];
  /** Its log is `<name>.log` here, its process id `<name>.pid`; its working directory. */
  directory: string;
  env?: Readonly<Record<string, string>>;
}

/** Starts a program whose log and process id are kept in the directory of the cluster. */
export async function startClusterProcess({
  name,
  command,
  args,
  directory,
  env,
}: ClusterProcessOptions): Promise<ClusterProcess> {
  const path = join(directory, `${name}.log`);
  const log = await open(path, 'a', 0o600);
  const child = spawn(command, args, {
    cwd: directory,
    stdio: ['ignore', log.fd, log.fd],
    env: { PATH: process.env['PATH'] ?? '', HOME: directory, ...env },
  });
  const ended = once(child, 'exit');
  try {
    await once(child, 'spawn');
  } finally {
    await log.close();
  }
  const { pid } = child as ChildProcess & { pid: number };
  await writeFile(join(directory, `${name}.pid`), String(pid));
  const isOver = (): boolean => child.exitCode !== null || child.signalCode !== null;
  return {
    pid,
    async untilReady(ready) {
      while (!(await ready().catch(() => false))) {
        if (isOver())
          throw new Error(`${name} has ended:\n${(await readFile(path, 'utf8')).trimEnd().split('\n').slice(-5).join('\n')}`);
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    },
    async stop(signal = 'SIGTERM') {
      if (isOver()) return;
      child.kill(signal);
      const patience = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(patience);
    },
  };
}
