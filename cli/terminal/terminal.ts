import type { ReadStream } from 'node:tty';
import type { OutputStream } from '#cli/output/paint.ts';

/** What the command line takes from its process. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: ReadStream | (NodeJS.ReadableStream & { readonly isTTY?: false | undefined });
  /** For results. */
  readonly stdout: OutputStream;
  /** For progress, questions and errors. */
  readonly stderr: OutputStream;
}

/** Whether there is a user who can answer questions. */
export function isInteractive(terminal: Terminal): boolean {
  return terminal.stdin.isTTY === true && terminal.stderr.isTTY === true;
}
