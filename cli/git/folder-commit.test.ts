import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import isomorphic from 'isomorphic-git';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { commitFolder, type FolderCommit } from './folder-commit.ts';

const author = { name: 'Ada', email: 'ada@example.com' };
let directory: string;
let commit: FolderCommit | undefined;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-folder-'));
});
afterEach(async () => {
  await commit?.remove();
  await rm(directory, { recursive: true, force: true });
});

async function write(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
}

/** Mode of each file in the commit. */
async function committed(parent?: string): Promise<Record<string, string>> {
  commit = await commitFolder({ directory, parent, message: 'Deploy', author });
  const { gitdir, oid } = commit;
  const found: Record<string, string> = {};
  await isomorphic.walk({
    fs,
    gitdir,
    trees: [isomorphic.TREE({ ref: oid })],
    map: async (path, [entry]) => {
      if ((await entry?.type()) === 'blob') found[path] = ((await entry?.mode()) ?? 0).toString(8);
      return undefined;
    },
  });
  return found;
}

describe('a commit of a folder', () => {
  it('has its files, executables and symlinks, and leaves the folder as it was', async () => {
    await write({ 'index.html': 'hello', 'bin/start': '#!/bin/sh\n' });
    await chmod(join(directory, 'bin/start'), 0o755);
    await symlink('index.html', join(directory, 'home'));
    expect(await committed()).toEqual({ 'index.html': '100644', 'bin/start': '100755', home: '120000' });
    expect((await readdir(directory)).sort()).toEqual(['bin', 'home', 'index.html']);
  });

  it('leaves out what .gitignore and .paasignore name, repositories, dependencies and files of secrets', async () => {
    await write({
      'a.js': '',
      '.gitignore': 'dist/\n*.log\n',
      '.paasignore': 'docs/\n!.env\n',
      'dist/a.js': '',
      'debug.log': '',
      'docs/a.md': '',
      'sub/.gitignore': 'local\n',
      'sub/local': '',
      'sub/kept': '',
      '.git/config': '',
      'node_modules/a/index.js': '',
      '.env': 'kept by .paasignore',
      '.env.local': '',
    });
    expect(Object.keys(await committed()).sort()).toEqual([
      '.env',
      '.gitignore',
      '.paasignore',
      'a.js',
      'sub/.gitignore',
      'sub/kept',
    ]);
  });

  it('follows a commit that is not on this machine', async () => {
    await write({ a: '' });
    await committed('5478677c3a5a1f2c8f1c1fbb6b9d7c7a6e1d2f30');
    const { gitdir = '', oid = '' } = commit ?? {};
    expect((await isomorphic.readCommit({ fs, gitdir, oid })).commit.parent).toEqual([
      '5478677c3a5a1f2c8f1c1fbb6b9d7c7a6e1d2f30',
    ]);
    await commit?.remove();
    expect(fs.existsSync(gitdir)).toBe(false);
  });

  it('is refused for what is no folder, and for one without files', async () => {
    await write({ a: '', '.paasignore': '*\n' });
    await expect(commitFolder({ directory, parent: undefined, message: '', author })).rejects.toThrow('has no files to deploy');
    const path = join(directory, 'a');
    await expect(commitFolder({ directory: path, parent: undefined, message: '', author })).rejects.toThrow('is not a folder');
  });

  it('leaves out pipes and sockets, which nobody could read to the end, and names them', async () => {
    await write({ 'index.html': 'hello', 'run/a.txt': 'a' });
    execFileSync('mkfifo', [join(directory, 'run/pipe')]);
    const server = createServer().listen(join(directory, 'app.sock'));
    await once(server, 'listening');
    try {
      expect(Object.keys(await committed()).toSorted()).toEqual(['index.html', 'run/a.txt']);
      expect(commit?.skipped.toSorted()).toEqual(['app.sock', 'run/pipe']);
    } finally {
      server.close();
    }
  });
});
