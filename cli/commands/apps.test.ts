import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';

const run = promisify(execFile);
const at = atSmallPlatform();

async function repository(): Promise<string> {
  const directory = join(at.person.home, 'work');
  await mkdir(directory);
  await run('git', ['init', '-q', '-b', 'work', directory]);
  return directory;
}

describe('an app', () => {
  it('becomes the git remote paas of the repository, which selects it for every command there', async () => {
    await at.logIn();
    const cwd = await repository();
    const { code, stdout, stderr } = await at.paas(['create', 'hello'], { cwd });
    expect(code).toBe(0);
    expect(stdout).toBe('http://hello.apps.localhost:8080 | ssh://git@127.0.0.1:2222/hello.git\n');
    expect(stderr).toContain('git push paas work');
    expect((await run('git', ['-C', cwd, 'remote', 'get-url', 'paas'])).stdout).toBe('ssh://git@127.0.0.1:2222/hello.git\n');
    expect((await at.paas(['info'], { cwd })).stdout).toMatch(/^Name: +hello$/m);
  });

  it('is not created when the remote exists; -r chooses another name', async () => {
    await at.logIn();
    const cwd = await repository();
    await at.paas(['create', 'hello'], { cwd });
    const second = await at.paas(['create', 'other'], { cwd });
    expect(second.code).toBe(5);
    expect(second.stderr).toContain('hello.git');
    expect((await at.paas(['apps', '--json'])).stdout).not.toContain('"other"');
    expect((await at.paas(['create', 'other', '-r', 'staging'], { cwd })).code).toBe(0);
    expect((await at.paas(['info', '-r', 'staging', '--json'], { cwd })).stdout).toContain('"name": "other"');
  });

  it('can be created outside of a repository, with a hint', async () => {
    await at.logIn();
    const { code, stderr } = await at.paas(['create', 'hello']);
    expect(code).toBe(0);
    expect(stderr).toContain('paas git:remote -a hello');
  });

  it('is selected by -a, then by PAAS_APP, then by the remote', async () => {
    await at.logIn();
    const cwd = await repository();
    for (const name of ['one', 'two']) await at.paas(['create', name, '--no-remote'], { cwd });
    await at.paas(['create', 'three'], { cwd });
    const nameOf = async (args: readonly string[], env = {}) => {
      const { stdout } = await at.paas(['info', '--json', ...args], { cwd, env });
      return (JSON.parse(stdout) as { name: string }).name;
    };
    expect(await nameOf([])).toBe('three');
    expect(await nameOf([], { PAAS_APP: 'two' })).toBe('two');
    expect(await nameOf(['-a', 'one'], { PAAS_APP: 'two' })).toBe('one');
    expect(await nameOf(['-r', 'paas'], { PAAS_APP: 'two' })).toBe('three');
  });

  it('that is not selected ends with code 2', async () => {
    await at.logIn();
    const { code, stderr } = await at.paas(['info']);
    expect(code).toBe(2);
    expect(stderr).toContain('-a NAME');
  });

  it('that does not exist ends with code 4, a taken name with code 5', async () => {
    await at.logIn();
    expect((await at.paas(['config', '-a', 'nowhere'])).code).toBe(4);
    await at.paas(['create', 'hello']);
    expect((await at.paas(['create', 'hello'])).code).toBe(5);
  });

  it('is listed with all others from all pages', async () => {
    await at.logIn();
    for (const name of ['one', 'two', 'three']) await at.paas(['create', name]);
    const { stdout } = await at.paas(['apps', '--json']);
    expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)).toEqual(['one', 'two', 'three']);
  });

  it('is deleted only when its name confirms it', async () => {
    await at.logIn();
    await at.paas(['create', 'hello']);
    expect((await at.paas(['destroy', '-a', 'hello', '-c', 'helo'])).code).toBe(2);
    expect((await at.paas(['destroy', '-a', 'hello'])).code).toBe(2);
    const purged = await at.paas(['destroy', '-c', 'hello', '--purge']);
    expect([purged.code, purged.stderr.includes('You can restore it')]).toEqual([0, false]);
    await at.paas(['create', 'hello']);
    expect((await at.paas(['destroy', '-c', 'hello'])).stderr).toContain('You can restore it until');
    expect((await at.paas(['apps', '--json'])).stdout).toBe('[]\n');
  });
});
