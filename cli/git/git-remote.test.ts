import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { appOfUrl, gitRemotes, isRemoteName } from '#cli/git/git-remote.ts';

const run = promisify(execFile);

it.each([
  ['ssh://git@localhost:2222/hello.git', 'hello'],
  ['ssh://git@paas.example.com/hello', 'hello'],
  ['ssh://git@localhost:2222/hello.git/', 'hello'],
  ['git@paas.example.com:hello.git', 'hello'],
  ['https://paas.example.com/hello-2.git', 'hello-2'],
  ['https://example.com/ada/hello.git', undefined],
  ['/srv/git/hello.git', undefined],
  ['ssh://git@localhost:2222/', undefined],
  ['ssh://git@localhost:2222/-rf.git', undefined],
])('%s belongs to the app %s', (url, app) => {
  expect(appOfUrl(url)).toBe(app);
});

it.each(['paas', 'my-app_2', 'v1.0'])('%s is a valid name for a remote', (name) => {
  expect(isRemoteName(name)).toBe(true);
});

it.each(['', '-f', '--upload-pack=x', 'a b', 'a..b', 'a/b', 'a.lock', 'a\nb'])('%j is no valid name for a remote', (name) => {
  expect(isRemoteName(name)).toBe(false);
});

describe('gitRemotes', () => {
  let directory: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'paas-remote-'));
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));

  it('adds, reads and replaces a remote of the repository in the current directory', async () => {
    await run('git', ['init', '-q', directory]);
    const remotes = gitRemotes(directory, process.env);
    expect(await remotes.inRepository()).toBe(true);
    expect(await remotes.read('paas')).toBeUndefined();
    await remotes.add('paas', 'ssh://git@localhost/one.git');
    await remotes.replace('paas', 'ssh://git@localhost/two.git');
    expect(await remotes.read('paas')).toBe('ssh://git@localhost/two.git');
    await expect(remotes.add('paas', 'ssh://git@localhost/three.git')).rejects.toThrow('already exists');
  });

  it('finds no repository and no remote outside of a repository', async () => {
    const remotes = gitRemotes(directory, process.env);
    expect(await remotes.inRepository()).toBe(false);
    expect(await remotes.read('paas')).toBeUndefined();
  });
});
