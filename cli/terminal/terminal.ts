import type { ReadStream } from 'node:tty';
import type { OutputStream } from '#cli/output/paint.ts';

/** Where the command line was started: everything it takes from its process. */
export interface Terminal {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: ReadStream | (NodeJS.ReadableStream & { readonly isTTY?: false | undefined });
  /** Data. */
  readonly stdout: OutputStream;
  /** Talk. */
  readonly stderr: OutputStream;
}

/** Whether there is somebody to ask. */
export function isInteractive(terminal: Terminal): boolean {
  return terminal.stdin.isTTY === true && terminal.stderr.isTTY === true;
}
