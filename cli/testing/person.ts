import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const launcher = new URL('../paas', import.meta.url).pathname;

/** Shared: in the home of a person it would always be cold. */
const compileCache = new URL('../../node_modules/.cache/paas-cli', import.meta.url).pathname;

/** The result of a command line. */
export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** How to run a command line. */
export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** A user of `paas` with a home directory. */
export interface Person {
  readonly home: string;
  /** The environment of each command. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Runs a command line in a process of its own. */
  paas(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** Starts a command without waiting for its end. */
  start(args: readonly string[], options?: CommandOptions): ChildProcess;
  remove(): Promise<void>;
}

/** Creates a person in a temporary home. @param env variables of each command */
export async function createPerson(env: Readonly<Record<string, string>> = {}): Promise<Person> {
  const home = await mkdtemp(join(tmpdir(), 'paas-person-'));
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PAAS_|XDG_|NO_COLOR|FORCE_COLOR|SSH_AUTH_SOCK)/.test(name)),
  );
  const ownEnv = {
    ...inherited,
    HOME: home,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CEILING_DIRECTORIES: tmpdir(),
    NODE_COMPILE_CACHE: compileCache,
    ...env,
  };
  function start(args: readonly string[], options: CommandOptions = {}): ChildProcess {
    const child = spawn(launcher, args, {
      cwd: options.cwd ?? home,
      env: { ...ownEnv, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin?.end(options.input ?? '');
    return child;
  }
  return {
    home,
    env: ownEnv,
    start,
    async paas(args, options) {
      const child = start(args, options);
      const output = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const) {
        child[name]?.setEncoding('utf8').on('data', (text: string) => {
          output[name] += text;
        });
      }
      const [code] = (await once(child, 'close')) as [number | null];
      return { code, ...output };
    },
    remove: () => rm(home, { recursive: true, force: true }),
  };
}
