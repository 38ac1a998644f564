import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import type { ReadStream } from 'node:tty';
import { Interrupted, usageError } from '#cli/errors/cli-error.ts';
import { isInteractive, type Terminal } from '#cli/terminal/terminal.ts';

/**
 * Asks for a line, and trims it.
 * @param alternative the hint of the error without a terminal
 * @throws CliError without a terminal, Interrupted after Ctrl-C
 */
export async function ask(terminal: Terminal, question: string, alternative: string): Promise<string> {
  if (!isInteractive(terminal)) throw usageError(`Cannot ask for "${question}" without a terminal.`, alternative);
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

/** Asks a question. Enter means yes. */
export async function confirm(terminal: Terminal, question: string, alternative: string): Promise<boolean> {
  return /^(y|yes)?$/i.test(await ask(terminal, `${question} [Y/n]`, alternative));
}

/** Like `ask`, without an echo. The answer is not trimmed. */
export async function askSecret(terminal: Terminal, question: string, alternative: string): Promise<string> {
  const { stdin } = terminal;
  if (!isInteractive(terminal) || stdin.isTTY !== true)
    throw usageError(`Cannot ask for "${question}" without a terminal.`, alternative);
  // The echo is off before the question appears, so that early input is not shown.
  stdin.setRawMode(true);
  terminal.stderr.write(`${question}: `);
  try {
    return await readHidden(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    terminal.stderr.write('\n');
  }
}

/** Interprets the keys that a terminal does not interpret in raw mode: Enter, Backspace, Ctrl-U, Ctrl-C, Ctrl-D. */
function readHidden(stdin: ReadStream): Promise<string> {
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
