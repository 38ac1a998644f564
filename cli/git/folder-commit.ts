import fs from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import isomorphic from 'isomorphic-git';
import { CliError, usageError } from '#cli/errors/cli-error.ts';

/** What no app wants in its repository. A line of `.paasignore` such as `!.env` takes it back. */
const alwaysIgnored = ['node_modules/', '.venv/', '__pycache__/', '.DS_Store', '.env', '.env.local'];

/** What a commit is made of. */
export interface FolderCommitOptions {
  /** Absolute. */
  directory: string;
  /** The commit before it, which need not be on this machine. Undefined for a first one. */
  parent: string | undefined;
  message: string;
  author: { name: string; email: string };
}

/** A commit in a temporary repository of its own. */
export interface FolderCommit {
  readonly gitdir: string;
  readonly oid: string;
  /** How many files are in it. */
  readonly files: number;
  /** What was left out, because git can store no sockets, pipes and devices. Paths in the folder. */
  readonly skipped: readonly string[];
  /** Deletes the repository; again is harmless. */
  remove(): Promise<void>;
}

/** The branch that the commit is on, in its repository. */
export const folderBranch = 'deploy';

/**
 * Makes a commit of the files in a folder, without git and without changing the folder. Files in its `.gitignore` and `.paasignore` are
 * left out.
 * @throws CliError when the folder cannot be read or has no files
 */
export async function commitFolder({ directory, parent, message, author }: FolderCommitOptions): Promise<FolderCommit> {
  if ((await stat(directory).catch(() => undefined))?.isDirectory() !== true)
    throw usageError(`${directory} is not a folder.`, 'Give the folder of the app: paas deploy DIR');
  const gitdir = await mkdtemp(join(tmpdir(), 'paas-deploy-'));
  const remove = (): Promise<void> => rm(gitdir, { recursive: true, force: true });
  try {
    const skipped: string[] = [];
    const repository = { fs: withoutSpecialFiles(directory, skipped), dir: directory, gitdir };
    await isomorphic.init({ ...repository, defaultBranch: folderBranch });
    const ignored = await readFile(join(directory, '.paasignore'), 'utf8').catch(() => '');
    await mkdir(join(gitdir, 'info'), { recursive: true });
    await writeFile(join(gitdir, 'info', 'exclude'), `${[...alwaysIgnored, ignored].join('\n')}\n`);
    await isomorphic.add({ ...repository, filepath: '.', parallel: false });
    const { length: files } = await isomorphic.listFiles(repository);
    if (files === 0) throw usageError(`${directory} has no files to deploy.`, 'Are all of them in .gitignore or .paasignore?');
    const oid = await isomorphic.commit({ ...repository, message, author, parent: parent === undefined ? [] : [parent] });
    return { gitdir, oid, files, skipped, remove };
  } catch (error) {
    await remove();
    if (error instanceof CliError) throw error;
    throw new CliError(`${directory} cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** A file system that shows no sockets, pipes and devices: reading one could wait for ever. */
function withoutSpecialFiles(directory: string, skipped: string[]) {
  const readdir = async (path: string): Promise<string[]> => {
    const entries = await fs.promises.readdir(path, { withFileTypes: true });
    const ordinary = entries.filter((entry) => entry.isFile() || entry.isDirectory() || entry.isSymbolicLink());
    for (const entry of entries) if (!ordinary.includes(entry)) skipped.push(relative(directory, join(path, entry.name)));
    return ordinary.map(({ name }) => name);
  };
  return { promises: { ...fs.promises, readdir } };
}
