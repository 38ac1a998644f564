import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { CliError } from '#cli/errors/cli-error.ts';

const run = promisify(execFile);

/** The repository one stands in, as far as its remotes go. */
export interface GitRemotes {
  /** False outside of a repository, and where there is no git. */
  inRepository(): Promise<boolean>;
  /** The URL of a remote as configured; undefined when there is no such remote. */
  read(remote: string): Promise<string | undefined>;
  add(remote: string, url: string): Promise<void>;
  replace(remote: string, url: string): Promise<void>;
}

export function gitRemotes(cwd: string): GitRemotes {
  async function git(...args: string[]): Promise<string> {
    const { stdout } = await run('git', args, { cwd, encoding: 'utf8' });
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
      return (await succeeds(git('rev-parse', '--git-dir'))) !== undefined;
    },
    async read(remote) {
      // Not `git remote get-url`, which an older git answers with the name itself when there is no such remote.
      return succeeds(git('config', '--get', `remote.${remote}.url`));
    },
    add: (remote, url) => change('add', '--', remote, url),
    replace: (remote, url) => change('set-url', '--', remote, url),
  };
}

async function succeeds(result: Promise<string>): Promise<string | undefined> {
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

/** The app a push URL means: `hello` for `ssh://git@host:2222/hello.git` and for `git@host:hello.git`. */
export function appOfUrl(url: string): string | undefined {
  const path = /^[a-z+]+:\/\/[^/]+\/(.+)$/.exec(url)?.[1] ?? /^[^/:]+:(?!\/\/)\/?(.+)$/.exec(url)?.[1];
  const name = path?.replace(/\/+$/, '').replace(/\.git$/, '');
  return name !== undefined && /^[a-z0-9][a-z0-9-]*$/.test(name) ? name : undefined;
}

/** A name git takes for a remote and no option of it: checked before it is part of a command line. */
export function isRemoteName(name: string): boolean {
  return /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/.test(name) && !name.includes('..') && !name.endsWith('.lock');
}
