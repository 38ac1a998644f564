import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync, readlinkSync } from 'node:fs';

/**
 * Creates a pipe without a name. Node can only create sockets for the output of programs, and a program cannot open those again as
 * /dev/stdout. A shell creates the pipe for a here-document; it is opened here before the shell ends.
 * @returns a file descriptor that reads and writes it, and never blocks
 * @throws Error if the shell of this machine uses no pipe for that
 */
export async function openPipe(): Promise<number> {
  const shell = spawn('/bin/sh', ['-c', 'exec 3<<end\nend\necho; read -r line'], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(shell, 'exit');
  try {
    await Promise.race([once(shell.stdout, 'data'), ended]);
    const path = `/proc/${shell.pid}/fd/3`;
    if (!readlinkSync(path).startsWith('pipe:')) throw new Error('/bin/sh uses no pipe for a here-document');
    return reopenPipe(path);
  } finally {
    shell.stdin.on('error', () => undefined);
    shell.stdin.end();
    await ended;
  }
}

/** Opens the pipe of another process, `/proc/<pid>/fd/<number>`. @returns like `openPipe` */
export function reopenPipe(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
}
