import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { millisecondsPerMinute } from '#shared/durations.ts';

/** Where tools of a kind come from. */
export interface ToolSource {
  /**
   * Versions that can be installed, in no order.
   * @param request what is asked for: sources without a list of all versions look this up alone
   */
  listVersions(request: string): Promise<readonly string[]>;
  /**
   * Installs into an empty directory. No code of the tool's package runs, and what was downloaded has been proven.
   * @returns the directory that is the tool: this one, or one below it
   */
  install(version: string, directory: string): Promise<string>;
}

/** What sources work with. */
export interface SourceParts {
  /** The operator's environment: how registries are reached. */
  readonly hostEnv: Readonly<Record<string, string | undefined>>;
  /** A Node.js program and npm's directory. */
  readonly node: string;
  readonly npm: string;
  /** Programs of the host that install. Undefined where there is none. */
  findProgram(name: HostProgram): Promise<string | undefined>;
}

/** Go gets other versions of itself, Python's pip reads PyPI, rustup installs Rust. */
export type HostProgram = 'go' | 'python3' | 'rustup';

const run = promisify(execFile);
const longestMilliseconds = 5 * millisecondsPerMinute;

export interface ProgramRun {
  readonly program: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** What the program printed. @throws Error if it fails or takes longer than an installation may */
export async function runProgram({ program, args, cwd, env }: ProgramRun): Promise<string> {
  const { stdout } = await run(program, [...args], {
    cwd,
    env: env as NodeJS.ProcessEnv,
    timeout: longestMilliseconds,
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
