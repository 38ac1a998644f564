import { spawn } from 'node:child_process';
import { omitUndefined } from '#shared/omit-undefined.ts';

/** The result of a program. */
export interface ToolResult {
  /** Null: a signal ended the program. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a program without standard input. Undefined if it is not installed.
 * @param env default: the environment of this process
 */
export function runTool(
  command: string,
  args: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): Promise<ToolResult | undefined> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...omitUndefined({ env }) });
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

/**
 * Runs a program on the terminal of the user.
 * @param env default: the environment of this process
 * @returns its exit code, null if a signal ended it
 */
export function runInForeground(
  command: string,
  args: readonly string[],
  env?: Readonly<Record<string, string | undefined>>,
): Promise<number | null | 'not installed'> {
  return new Promise((resolve) => {
    const child = spawn(command, args, omitUndefined({ stdio: 'inherit' as const, env }));
    child.on('error', () => resolve('not installed'));
    child.on('close', resolve);
  });
}

/** Starts a program that may outlive this one. False if it is not installed or fails within `graceSeconds`. */
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
