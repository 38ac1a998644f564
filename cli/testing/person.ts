import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const launcher = new URL('../paas', import.meta.url).pathname;

/** Not in each person's home, where it would be cold each time. */
const compileCache = new URL('../../node_modules/.cache/paas-cli', import.meta.url).pathname;

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
}

/** Somebody with a home directory of their own, who types `paas`. */
export interface Person {
  readonly home: string;
  paas(args: readonly string[], options?: CommandOptions): Promise<CommandResult>;
  /** A command that is not waited for. */
  start(args: readonly string[], options?: CommandOptions): ChildProcess;
  remove(): Promise<void>;
}

export async function createPerson(env: Readonly<Record<string, string>> = {}): Promise<Person> {
  const home = await mkdtemp(join(tmpdir(), 'paas-person-'));
  const inherited = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(PAAS_|XDG_|NO_COLOR|FORCE_COLOR|SSH_AUTH_SOCK)/.test(name)),
  );
  function start(args: readonly string[], options: CommandOptions = {}): ChildProcess {
    const child = spawn(launcher, args, {
      cwd: options.cwd ?? home,
      env: {
        ...inherited,
        HOME: home,
        GIT_CONFIG_GLOBAL: '/dev/null',
        GIT_CEILING_DIRECTORIES: tmpdir(),
        NODE_COMPILE_CACHE: compileCache,
        ...env,
        ...options.env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.stdin?.end(options.input ?? '');
    return child;
  }
  return {
    home,
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
