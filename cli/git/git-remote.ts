import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CliError } from '#cli/errors/cli-error.ts';

const run = promisify(execFile);

/** The remotes of the repository in the current directory. */
export interface GitRemotes {
  /** False outside of a repository, and without git. */
  inRepository(): Promise<boolean>;
  /** The branch that is checked out. Undefined outside of a repository and for a commit without a branch. */
  currentBranch(): Promise<string | undefined>;
  /** The configured URL of a remote. Undefined if there is no such remote. */
  read(remote: string): Promise<string | undefined>;
  /** @throws CliError when git refuses */
  add(remote: string, url: string): Promise<void>;
  /** @throws CliError when git refuses */
  replace(remote: string, url: string): Promise<void>;
}

/** @param cwd the current directory @param env the environment of git */
export function gitRemotes(cwd: string, env: Readonly<Record<string, string | undefined>>): GitRemotes {
  async function git(...args: string[]): Promise<string> {
    const { stdout } = await run('git', args, { cwd, env, encoding: 'utf8' });
    return stdout.trim();
  }
  async function change(...args: string[]): Promise<void> {
    try {
      await git('remote', ...args);
    } catch (error) {
      throw new CliError(`git remote ${args.join(' ')} failed: ${firstLine(error)}`, { cause: error });
    }
  }
  return {
    async inRepository() {
      return (await outputOf(git('rev-parse', '--git-dir'))) !== undefined;
    },
    async currentBranch() {
      return outputOf(git('symbolic-ref', '--short', 'HEAD'));
    },
    async read(remote) {
      // Not `git remote get-url`: for an unknown remote, old versions of git print its name.
      return outputOf(git('config', '--get', `remote.${remote}.url`));
    },
    add: (remote, url) => change('add', '--', remote, url),
    replace: (remote, url) => change('set-url', '--', remote, url),
  };
}

async function outputOf(result: Promise<string>): Promise<string | undefined> {
  try {
    return await result;
  } catch {
    return undefined;
  }
}

function firstLine(error: unknown): string {
  const text = error instanceof Error && 'stderr' in error ? String(error.stderr) : String(error);
  return text.trim().split('\n')[0] ?? '';
}

/** The app of a push URL: `hello` for `ssh://git@host:2222/hello.git` and `git@host:hello.git`. Undefined for other URLs. */
export function appOfUrl(url: string): string | undefined {
  const path = /^[a-z+]+:\/\/[^/]+\/(.+)$/.exec(url)?.[1] ?? /^[^/:]+:(?!\/\/)\/?(.+)$/.exec(url)?.[1];
  const name = path?.replace(/\/+$/, '').replace(/\.git$/, '');
  return name !== undefined && /^[a-z0-9][a-z0-9-]*$/.test(name) ? name : undefined;
}

/** Whether git accepts the name for a remote, and cannot take it for an option. */
export function isRemoteName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(name) && !name.includes('..') && !name.endsWith('.lock');
}
