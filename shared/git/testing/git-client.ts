import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** How a git command ended. */
export interface GitOutcome {
  code: number;
  stdout: string;
  stderr: string;
}

const environment = {
  PATH: process.env['PATH'] ?? '',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.com',
  GIT_COMMITTER_NAME: 'C',
  GIT_COMMITTER_EMAIL: 'c@example.com',
  GIT_ALLOW_PROTOCOL: 'ext:file',
  GIT_TERMINAL_PROMPT: '0',
  LC_ALL: 'C',
};

/** Runs stock git with its default configuration. */
export function tryGit(directory: string, args: readonly string[], input?: string | Buffer): Promise<GitOutcome> {
  return new Promise((resolve, reject) => {
    const options = { cwd: directory, env: { ...environment, HOME: directory }, maxBuffer: 512 * 1024 * 1024 };
    const child = execFile(
      'git',
      ['-c', 'init.defaultBranch=main', '-c', 'gc.auto=0', ...args],
      options,
      (error, stdout, stderr) => {
        // git aborts when it finds a bug of its own: that counts as a failure like others.
        if (error?.signal === 'SIGABRT') resolve({ code: 134, stdout, stderr });
        else if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      },
    );
    // A command may end before it has read its input. Its exit status counts.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** Runs stock git. Returns its output, trimmed. @throws Error with all its output when it fails */
export async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tryGit(directory, args);
  if (code !== 0) throw new Error(`git ${args.join(' ')} exited with ${code}:\n${stdout}${stderr}`);
  return stdout.trim();
}

/** Writes files and commits them. Returns the id of the commit. */
export async function commitFiles(
  directory: string,
  files: Readonly<Record<string, string | Buffer>>,
  message = 'a commit',
): Promise<string> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), content);
  }
  await git(directory, 'add', '-A');
  await git(directory, 'commit', '-q', '--allow-empty', '-m', message);
  return await git(directory, 'rev-parse', 'HEAD');
}

/** Creates refs to one commit by writing `packed-refs`, which is far faster than `git update-ref` for thousands of them. */
export async function packRefs(directory: string, names: readonly string[], commit: string): Promise<void> {
  const lines = names.toSorted().map((name) => `${commit} ${name}\n`);
  await writeFile(join(directory, '.git', 'packed-refs'), `# pack-refs with: peeled fully-peeled sorted \n${lines.join('')}`);
}
