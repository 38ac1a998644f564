import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** Ends its process group at the end of its input, which nobody writes to: it ends with the process that holds the other side. */
const watchInput = 'exec 3<&0; { cat <&3 >/dev/null; kill -KILL 0; } >/dev/null 2>&1 & exec 3<&- </dev/null; exec "$@"';

/**
 * Starts a program in a process group of its own, `-pid`. The whole group is killed when this process ends, however it ends, and when the
 * program does: a program that is started by `npx` would be left behind otherwise.
 */
export function spawnBound(
  [command, ...args]: readonly [string, ...string[]],
  { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv },
): ChildProcessByStdio<Writable, Readable, Readable> {
  return spawn('/bin/sh', ['-c', watchInput, 'sh', command, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}
