import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, openSync, readlinkSync } from 'node:fs';

/** Of the shell that creates pipes: all that a POSIX shell can name, apart from the standard ones. */
const descriptors = [3, 4, 5, 6, 7, 8, 9] as const;
const script = `exec ${descriptors.map((descriptor) => `${descriptor}<<end`).join(' ')}\n${'end\n'.repeat(descriptors.length)}echo; read -r line`;

/** Pipes that were created ahead, so that a program that starts does not wait for a shell. */
export interface PipeStock {
  /**
   * A pipe without a name.
   * @returns a file descriptor that reads and writes it, and never blocks; it belongs to the caller
   * @throws Error if the shell of this machine uses no pipe for a here-document
   */
  take(): Promise<number>;
}

/** A stock that is filled again before the two pipes that a program needs would be missing. */
export function createPipeStock(): PipeStock {
  const stock: number[] = [];
  let filling: Promise<void> | undefined;

  function fill(): Promise<void> {
    filling ??= createPipes()
      .then((pipes) => void stock.push(...pipes))
      .finally(() => {
        filling = undefined;
      });
    return filling;
  }
  /** Whoever needs a pipe and gets none tries again, and is told why. */
  const fillAhead = (): void => void fill().catch(() => undefined);

  fillAhead();
  return {
    async take() {
      for (;;) {
        const pipe = stock.pop();
        if (stock.length < 2) fillAhead();
        if (pipe !== undefined) return pipe;
        await fill();
      }
    },
  };
}

/**
 * Node can only create sockets for the output of programs, and a program cannot open those again as /dev/stdout. A shell creates a pipe for
 * a here-document; it is opened here before the shell ends. Starting a shell costs as much as starting a small program, so it creates as
 * many as it can.
 */
async function createPipes(): Promise<number[]> {
  const shell = spawn('/bin/sh', ['-c', script], { env: {}, stdio: ['pipe', 'pipe', 'ignore'] });
  const ended = once(shell, 'exit');
  try {
    await Promise.race([once(shell.stdout, 'data'), ended]);
    const paths = descriptors.map((descriptor) => `/proc/${shell.pid}/fd/${descriptor}`);
    if (!paths.every((path) => readlinkSync(path).startsWith('pipe:')))
      throw new Error('/bin/sh uses no pipe for a here-document');
    return paths.map(reopenPipe);
  } finally {
    shell.stdin.on('error', () => undefined);
    shell.stdin.end();
    await ended;
  }
}

/** Opens the pipe of another process, `/proc/<pid>/fd/<number>`. @returns like `PipeStock.take` */
export function reopenPipe(path: string): number {
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
}
