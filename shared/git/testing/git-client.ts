import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

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

/** Stock git, with no configuration but its own defaults. */
export function tryGit(directory: string, args: readonly string[], input?: string | Buffer): Promise<GitOutcome> {
  return new Promise((resolve, reject) => {
    const options = { cwd: directory, env: { ...environment, HOME: directory }, maxBuffer: 512 * 1024 * 1024 };
    const child = execFile(
      'git',
      ['-c', 'init.defaultBranch=main', '-c', 'gc.auto=0', ...args],
      options,
      (error, stdout, stderr) => {
        // git ends itself so where it finds a bug of its own: it did not take what it was given.
        if (error?.signal === 'SIGABRT') resolve({ code: 134, stdout, stderr });
        else if (error !== null && typeof error.code !== 'number') reject(error);
        else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
      },
    );
    // A command that ends before it has read its input is judged by its exit status.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** @returns what it printed, trimmed. @throws Error with everything it said when it fails */
export async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tryGit(directory, args);
  if (code !== 0) throw new Error(`git ${args.join(' ')} exited with ${code}:\n${stdout}${stderr}`);
  return stdout.trim();
}

/** Writes files and commits them. @returns the commit's id */
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
