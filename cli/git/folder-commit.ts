import fs from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
    const repository = { fs, dir: directory, gitdir };
    await isomorphic.init({ ...repository, defaultBranch: folderBranch });
    const ignored = await readFile(join(directory, '.paasignore'), 'utf8').catch(() => '');
    await mkdir(join(gitdir, 'info'), { recursive: true });
    await writeFile(join(gitdir, 'info', 'exclude'), `${[...alwaysIgnored, ignored].join('\n')}\n`);
    await isomorphic.add({ ...repository, filepath: '.', parallel: false });
    const { length: files } = await isomorphic.listFiles(repository);
    if (files === 0) throw usageError(`${directory} has no files to deploy.`, 'Are all of them in .gitignore or .paasignore?');
    const oid = await isomorphic.commit({ ...repository, message, author, parent: parent === undefined ? [] : [parent] });
    return { gitdir, oid, files, remove };
  } catch (error) {
    await remove();
    if (error instanceof CliError) throw error;
    throw new CliError(`${directory} cannot be read: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}
