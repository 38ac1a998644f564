import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

/** The command failed; the message is what it printed. */
export class HostCommandError extends Error {}

/** Runs short commands of the host. */
export interface HostCommands {
  /**
   * Runs a program, without a shell's interpretation of its arguments. stdin is empty, and PATH is that of the system.
   * @returns what it printed, at most `longestOutput` characters
   * @throws HostCommandError if it exits with anything but 0
   * @throws TypeError for an argument with a newline or a NUL
   */
  run(program: string, args: readonly string[]): Promise<string>;
}

const longestOutput = 3000;
const path = '/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * Reads the number of words of a command and the words, a line each, runs it and answers with its exit code, what it printed, and a NUL.
 * It ends with its standard input, and so with the process that started it.
 */
const script = `while read -r count; do
  set --
  while [ "$count" -gt 0 ]; do IFS= read -r word || exit; set -- "$@" "$word"; count=$((count - 1)); done
  output=$("$@" 2>&1 < /dev/null)
  printf '%s %.${longestOutput}s\\0' "$?" "$output"
done`;

/**
 * Runs commands from small shells that stay. A large process such as the control plane spends 5 to 10 ms of processor time on each fork,
 * in which it does nothing else; a small one less than one.
 * @param most commands at a time; others wait
 */
export function createHostCommands(most: number): HostCommands {
  const idle: CommandShell[] = [];
  const waiting: ((shell: CommandShell) => void)[] = [];
  let started = 0;

  async function takeShell(): Promise<CommandShell> {
    const shell = idle.pop();
    if (shell !== undefined) return shell;
    if (started < most) {
      started += 1;
      return startShell();
    }
    return new Promise((resolve) => waiting.push(resolve));
  }

  function putBack(shell: CommandShell): void {
    if (shell.ended()) started -= 1;
    const next = waiting.shift();
    if (next !== undefined) {
      if (shell.ended()) started += 1;
      next(shell.ended() ? startShell() : shell);
    } else if (!shell.ended()) idle.push(shell);
  }

  return {
    async run(program, args) {
      const words = [program, ...args];
      if (words.some((word) => /[\n\0]/.test(word))) throw new TypeError(`${program}: an argument contains a newline or a NUL`);
      const shell = await takeShell();
      try {
        const [, code, output = ''] = /^(\d+) ([^]*)$/.exec(await shell.ask(`${words.length}\n${words.join('\n')}\n`)) ?? [];
        if (code !== '0') throw new HostCommandError(`${program}: ${output.trim() || `exit code ${code}`}`);
        return output;
      } finally {
        putBack(shell);
      }
    },
  };
}

/** A shell that runs one command at a time. */
interface CommandShell {
  /** @returns its answer without the NUL at the end @throws HostCommandError if the shell has ended */
  ask(request: string): Promise<string>;
  ended(): boolean;
}

function startShell(): CommandShell {
  // Detached, so that Ctrl-C in a terminal does not end a command that the shutdown waits for.
  const shell = spawn('/bin/sh', ['-c', script, 'paas-commands'], {
    env: { PATH: path, LC_ALL: 'C' },
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let answer: PromiseWithResolvers<string> | undefined;
  let text = '';
  let ended = false;
  shell.stdout.setEncoding('utf8');
  shell.stdout.on('data', (chunk: string) => {
    text += chunk;
    if (!text.endsWith('\0')) return;
    answer?.resolve(text.slice(0, -1));
    text = '';
  });
  const end = (): void => {
    ended = true;
    answer?.reject(new HostCommandError('the shell that runs commands of the host has ended'));
  };
  shell.once('error', end);
  shell.once('close', end);
  shell.stdin.on('error', () => undefined); // `close` says it
  keepWaiting(shell, false);
  return {
    ended: () => ended,
    async ask(request) {
      answer = Promise.withResolvers();
      if (ended) end();
      keepWaiting(shell, true);
      try {
        shell.stdin.write(request);
        return await answer.promise;
      } finally {
        answer = undefined;
        if (!ended) keepWaiting(shell, false);
      }
    },
  };
}

/** Whether this process stays alive for the shell's answer. */
function keepWaiting(shell: ChildProcess, waits: boolean): void {
  const verb = waits ? 'ref' : 'unref';
  shell[verb]();
  for (const stream of [shell.stdin, shell.stdout])
    (stream as ((Readable | Writable) & Partial<Record<typeof verb, () => void>>) | null)?.[verb]?.();
}

/** The commands of this process, by all that run some. */
export const hostCommands: HostCommands = createHostCommands(8);
