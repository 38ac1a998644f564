import { spawn } from 'node:child_process';

export interface ToolResult {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end with nothing on its standard input; undefined when it is not installed. */
export function runTool(command: string, args: readonly string[]): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.stderr += text;
    });
    child.on('error', (error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? resolve(undefined) : reject(error)));
    child.on('close', (code) => resolve({ code, ...output }));
  });
}

/** Runs a program that talks to the person itself, in `env` or the environment of this one; null when a signal ended it. */
export function runInForeground(
  command: string,
  args: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): Promise<number | null | 'not installed'> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'inherit', ...(env === undefined ? {} : { env }) });
    child.on('error', () => resolve('not installed'));
    child.on('close', resolve);
  });
}

/** Starts a program that may outlive this one; false when it is not installed or fails within `graceSeconds`. */
export function runDetached(command: string, args: readonly string[], graceSeconds: number): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: 'ignore', detached: true });
    const grace = setTimeout(() => settle(true), graceSeconds * 1000);
    function settle(works: boolean): void {
      clearTimeout(grace);
      child.unref();
      resolve(works);
    }
    child.on('error', () => settle(false));
    child.on('exit', (code) => settle(code === 0));
  });
}
