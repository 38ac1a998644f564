import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import type { ReadStream } from 'node:tty';
import { Interrupted, usageError } from '#cli/errors/cli-error.ts';
import { isInteractive, type Terminal } from '#cli/terminal/terminal.ts';

/** One line from the person at the terminal, trimmed. `otherwise` says what to do where there is nobody to ask. */
export async function ask(terminal: Terminal, question: string, otherwise: string): Promise<string> {
  if (!isInteractive(terminal)) throw usageError(`There is no terminal to ask "${question}" on.`, otherwise);
  const lines = createInterface({ input: terminal.stdin, terminal: false });
  const interrupt = new AbortController();
  lines.once('close', () => interrupt.abort());
  terminal.stderr.write(`${question}: `);
  try {
    return (await lines.question('', { signal: interrupt.signal })).trim();
  } catch (error) {
    if (interrupt.signal.aborted) throw new Interrupted();
    throw error;
  } finally {
    lines.close();
  }
}

/** Enter alone means yes. */
export async function confirm(terminal: Terminal, question: string, otherwise: string): Promise<boolean> {
  return /^(y|yes)?$/i.test(await ask(terminal, `${question} [Y/n]`, otherwise));
}

/** Like `ask`, without an echo and untrimmed. */
export async function askSecret(terminal: Terminal, question: string, otherwise: string): Promise<string> {
  const { stdin } = terminal;
  if (!isInteractive(terminal) || stdin.isTTY !== true)
    throw usageError(`There is no terminal to ask "${question}" on.`, otherwise);
  // First the echo off, then the question: nothing typed early is shown.
  stdin.setRawMode(true);
  terminal.stderr.write(`${question}: `);
  try {
    return await readUnseen(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    terminal.stderr.write('\n');
  }
}

/** In raw mode the keys are ours to interpret: Enter, Backspace, Ctrl-U, Ctrl-C, Ctrl-D. */
function readUnseen(stdin: ReadStream): Promise<string> {
  const typed: string[] = [];
  return new Promise((resolve, reject) => {
    function finish(settle: () => void): void {
      stdin.off('data', read);
      settle();
    }
    function read(chunk: Buffer | string): void {
      for (const key of chunk.toString()) {
        if (key === '\r' || key === '\n') return finish(() => resolve(typed.join('')));
        if (key === '\u0003' || key === '\u0004') return finish(() => reject(new Interrupted()));
        if (key === '\u007f' || key === '\b') typed.pop();
        else if (key === '\u0015') typed.length = 0;
        else typed.push(key);
      }
    }
    stdin.on('data', read);
    stdin.resume();
  });
}

/** All of standard input. */
export function readStdin(terminal: Terminal): Promise<string> {
  return text(terminal.stdin);
}
