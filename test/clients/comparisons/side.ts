import { mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RunResult, run } from '#test/support/run-program.ts';

/** One of the two compared servers, and a directory for the clients of one comparison. */
export interface Side {
  /** A repository with the history of `makeHistory`. */
  url: string;
  /** A repository without refs. */
  emptyUrl: string;
  /** Empty, and used by this comparison only. */
  directory: string;
  /** Runs git. Resolves when it fails, too. */
  try(cwd: string, ...args: readonly string[]): Promise<RunResult>;
  /** Runs git. Resolves with its output, and rejects when it fails. */
  git(cwd: string, ...args: readonly string[]): Promise<string>;
}

/** Describes a result, which is the same for both servers when ours does what git's does. */
export type Comparison = (side: Side) => Promise<string>;

const environment = {
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
  LC_ALL: 'C',
};

/** Which server, and how clients reach it. */
export interface SideOptions {
  program: string;
  /** Of git's protocol. */
  version: string;
  url: string;
  emptyUrl: string;
  home: string;
  sshCommand: string;
}

/** Prepares one side of a comparison. */
export async function openSide({ program, version, url, emptyUrl, home, sshCommand }: SideOptions): Promise<Side> {
  const settings = [`protocol.version=${version}`, 'init.defaultBranch=main', 'gc.auto=0', 'maintenance.auto=false'];
  const directory = await mkdtemp(join(home, 'side-'));
  const attempt = (cwd: string, ...args: readonly string[]): Promise<RunResult> =>
    run(program, [...settings.flatMap((setting) => ['-c', setting]), ...args], {
      cwd,
      env: { ...environment, GIT_SSH_COMMAND: sshCommand, HOME: home },
    });
  return {
    url,
    emptyUrl,
    directory,
    try: attempt,
    async git(cwd, ...args) {
      const { code, stdout, output } = await attempt(cwd, ...args);
      if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}:\n${output}`);
      return stdout.trim();
    },
  };
}

/** The whole content of a repository: refs, objects, and where its history ends. */
export async function contentOf({ git }: Side, cwd: string): Promise<string> {
  const refs = await git(cwd, 'for-each-ref', '--format=%(refname) %(objectname) %(symref)');
  const objects = await git(cwd, 'cat-file', '--batch-all-objects', '--batch-check', '--unordered');
  const shallow = await readFile(join(cwd, await git(cwd, 'rev-parse', '--git-dir'), 'shallow'), 'utf8').catch(() => '');
  return [refs, ...objects.split('\n').toSorted(), 'shallow:', ...shallow.split('\n').toSorted()].join('\n');
}
