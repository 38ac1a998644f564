import { mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RunResult, run } from '#test/support/run-program.ts';

/** One of the two servers that are held against each other, and a place for the clients of one comparison. */
export interface Side {
  /** The history of `makeHistory`, at both sides. */
  url: string;
  /** Without a single ref, at both sides. */
  emptyUrl: string;
  /** Of the comparison's own, empty. */
  directory: string;
  /** A failure is a code. */
  try(cwd: string, ...args: readonly string[]): Promise<RunResult>;
  /** What it printed. Rejects when it fails. */
  git(cwd: string, ...args: readonly string[]): Promise<string>;
}

/** What is the same at both servers when ours does what git's own does. */
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

export interface SideOptions {
  program: string;
  /** Of the protocol. */
  version: string;
  url: string;
  emptyUrl: string;
  home: string;
  sshCommand: string;
}

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

/** All that a repository has: refs, objects, and where its history is cut off. */
export async function contentOf({ git }: Side, cwd: string): Promise<string> {
  const refs = await git(cwd, 'for-each-ref', '--format=%(refname) %(objectname) %(symref)');
  const objects = await git(cwd, 'cat-file', '--batch-all-objects', '--batch-check', '--unordered');
  const shallow = await readFile(join(cwd, await git(cwd, 'rev-parse', '--git-dir'), 'shallow'), 'utf8').catch(() => '');
  return [refs, ...objects.split('\n').toSorted(), 'shallow:', ...shallow.split('\n').toSorted()].join('\n');
}
