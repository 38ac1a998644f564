import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface RunResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** Both as they came. */
  output: string;
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string>;
  input?: string;
  signal?: AbortSignal;
  /** Called with each piece as it comes. */
  onOutput?: (text: string) => void;
}

/** Runs a program to its end; a failure is a code, not an exception. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: [options.input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
    signal: options.signal,
    killSignal: 'SIGINT',
  });
  child.stdin?.end(options.input);
  const result: RunResult = { code: null, stdout: '', stderr: '', output: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      result[name] += text;
      result.output += text;
      options.onOutput?.(text);
    });
  }
  child.on('error', () => undefined);
  const [code] = (await once(child, 'close')) as [number | null];
  return { ...result, code };
}

/** Like `run`, but rejects with the output when the program fails. */
export async function runChecked(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const result = await run(command, args, options);
  if (result.code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${result.code}:\n${result.output}`);
  return result;
}
