import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, symlink } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { atSmallPlatform } from '#cli/testing/at-small-platform.ts';
import { freePort } from '#test/support/servers/free-port.ts';

const run = promisify(execFile);
const at = atSmallPlatform();

describe('the launcher', () => {
  it('finds its checkout through absolute and relative symbolic links', async () => {
    await symlink(new URL('paas', import.meta.url).pathname, join(at.person.home, 'one'));
    await mkdir(join(at.person.home, 'bin'));
    await symlink('../one', join(at.person.home, 'bin', 'paas'));
    const { stdout } = await run(join(at.person.home, 'bin', 'paas'), ['version']);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('explains how to install a checkout that was never started', async () => {
    await mkdir(join(at.person.home, 'checkout/cli'), { recursive: true });
    const copy = join(at.person.home, 'checkout/cli/paas');
    await copyFile(new URL('paas', import.meta.url), copy);
    await expect(run(copy, ['version'])).rejects.toMatchObject({ code: 1, stderr: expect.stringContaining('Run `npm start`') });
  });

  it('passes arguments on without interpreting them', async () => {
    await at.logIn();
    await at.person.paas(['create', 'hello']);
    const value = '$(touch hacked) `touch hacked` ; \' " * \\ \n two';
    await at.person.paas(['config:set', '-a', 'hello', `ODD=${value}`]);
    expect(at.platform.config).toEqual({ ODD: value });
  });
});

describe('a command line', () => {
  it('without a command prints all commands and exit codes', async () => {
    const { code, stdout } = await at.paas([]);
    expect(code).toBe(0);
    expect(stdout).toContain('config:set');
    expect(stdout).toContain('130  ended with Ctrl-C');
  });

  it.each([
    ['lgos', 'paas logs'],
    ['config:st', 'paas config:set'],
    ['acess', undefined],
  ])('with the unknown command %s ends with code 2', async (typed, meant) => {
    const { code, stdout, stderr } = await at.paas([typed]);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toContain(`Unknown command "${typed}".`);
    if (meant !== undefined) expect(stderr).toContain(`Did you mean \`${meant}\``);
  });

  it('with a password is refused with a reason that does not contain it', async () => {
    const { code, stderr } = await at.paas(['login', '--password', 'hunter2']);
    expect(code).toBe(2);
    expect(stderr).toContain('every user of this machine could read it');
    expect(stderr).not.toContain('hunter2');
  });

  it('with --help needs no arguments', async () => {
    const { code, stdout } = await at.paas(['config:get', '--help']);
    expect(code).toBe(0);
    expect(stdout).toContain('paas config:get NAME');
  });
});

describe('a platform that does not answer correctly', () => {
  it('is reported as unreachable with code 6 and how to start it', async () => {
    const { code, stderr } = await at.paas(['status', '--host', `http://localhost:${await freePort()}`]);
    expect(code).toBe(6);
    expect(stderr).toContain('nothing listens there');
    expect(stderr).toContain('npm start');
  });

  it('is distinguished from another program at its address', async () => {
    const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<h1>Hello</h1>')).listen(
      0,
      '127.0.0.1',
    );
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    const { code, stderr } = await at.paas(['status', '--host', `http://127.0.0.1:${port}`]);
    other.close();
    expect(code).toBe(6);
    expect(stderr).toContain('not as a paas platform does');
  });
});
