import { Readable } from 'node:stream';
import { runCommandLine } from '#cli/run.ts';
import type { CommandResult } from '#cli/testing/person.ts';

/** Runs a command line in the process of the test. That is faster than a process of its own, and has no signals and no terminal. */
export async function runInProcess(
  args: readonly string[],
  { cwd, env, input }: { cwd: string; env: Readonly<Record<string, string | undefined>>; input: string },
): Promise<CommandResult> {
  const output = { stdout: '', stderr: '' };
  const collect = (name: keyof typeof output) => ({
    write: (text: string | Uint8Array) => {
      output[name] += typeof text === 'string' ? text : Buffer.from(text).toString();
    },
  });
  const stdin = Readable.from([input]);
  const code = await runCommandLine(args, { env, cwd, stdin, stdout: collect('stdout'), stderr: collect('stderr') });
  return { code, ...output };
}
