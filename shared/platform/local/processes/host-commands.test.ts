import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { createHostCommands, HostCommandError } from './host-commands.ts';
import { readDescendants, readProcessIdentity } from './process-identity.ts';

describe('commands of the host', () => {
  const commands = createHostCommands(2);

  it('answer with what they print', async () => {
    expect(await commands.run('printf', ['%s|', 'one', 'two words', '$HOME `id` "\'\\', ''])).toBe(
      'one|two words|$HOME `id` "\'\\||',
    );
    expect(await commands.run('cat', [])).toBe('');
  });

  it('fail with what they print, and the next one runs', async () => {
    await expect(commands.run('ls', ['/nothing/there'])).rejects.toThrow(/^ls: .*\/nothing\/there.*No such file/);
    await expect(commands.run('false', [])).rejects.toThrow('false: exit code 1');
    await expect(commands.run('no-such-program', [])).rejects.toThrow(HostCommandError);
    expect(await commands.run('echo', ['-n', 'again'])).toContain('again');
  });

  it('refuse words that would be read as two', async () => {
    await expect(commands.run('echo', ['one\ntwo'])).rejects.toThrow(TypeError);
    await expect(commands.run('echo', ['one\0two'])).rejects.toThrow(TypeError);
  });

  it('run no more than so many at a time, and all of them', async () => {
    const before = (await readDescendants(process.pid)).length;
    const two = createHostCommands(2);
    const answers = Array.from({ length: 20 }, (_, index) => two.run('echo', [String(index)]));
    expect((await Promise.all(answers)).map((text) => text.trim())).toEqual(answers.map((_, index) => String(index)));
    const shells = (await readDescendants(process.pid)).length - before;
    expect(shells).toBeLessThanOrEqual(2);
  });

  it('never print so much that this process runs out of memory', async () => {
    expect((await commands.run('seq', ['1', '100000'])).length).toBeLessThanOrEqual(3000);
  });

  it('run after a shell was killed', async () => {
    const own = createHostCommands(1);
    // The program's parent is the shell.
    await expect(own.run('sh', ['-c', 'kill -KILL $PPID'])).rejects.toThrow('has ended');
    expect(await own.run('echo', ['alive'])).toContain('alive');
  });

  it('let the process end that started them, and end with it', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'paas-commands-'));
    try {
      const module = new URL('host-commands.ts', import.meta.url).href;
      const code = `const { hostCommands } = await import(${JSON.stringify(module)});
        await hostCommands.run('mkdir', [${JSON.stringify(join(directory, 'made'))}]);
        console.log((await import('node:fs')).readFileSync('/proc/self/task/' + process.pid + '/children', 'utf8'));`;
      const { stdout } = await promisify(execFile)(process.execPath, ['--no-warnings', '--input-type=module', '-e', code]);
      expect(await readdir(directory)).toEqual(['made']);
      const shell = Number(stdout.trim());
      expect(shell).toBeGreaterThan(0);
      await expect.poll(() => readProcessIdentity(shell), { timeout: 5000 }).toBeUndefined();
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
