import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createPerson, type Person } from '#cli/testing/person.ts';
import { type SmallPlatform, smallPlatformPassword, startSmallPlatform } from '#cli/testing/small-platform.ts';
import { freePort } from '#test/support/free-port.ts';

const run = promisify(execFile);

describe('paas, as a person runs it', () => {
  let platform: SmallPlatform;
  let person: Person;
  beforeEach(async () => {
    platform = await startSmallPlatform();
    person = await createPerson({ PAAS_API_URL: platform.host });
  });
  afterEach(async () => {
    await person.remove();
    await platform.close();
  });

  const logIn = () => person.paas(['login', '-e', 'ada@example.com', '--password-stdin'], { input: `${smallPlatformPassword}\n` });
  const credentialsFile = () => join(person.home, '.config/paas/credentials.json');
  async function repository(): Promise<string> {
    const directory = join(person.home, 'work');
    await mkdir(directory);
    await run('git', ['init', '-q', directory]);
    return directory;
  }

  describe('the launcher', () => {
    it('finds its checkout through a chain of symbolic links, absolute and relative', async () => {
      await symlink(new URL('paas', import.meta.url).pathname, join(person.home, 'one'));
      await mkdir(join(person.home, 'bin'));
      await symlink('../one', join(person.home, 'bin', 'paas'));
      const { stdout } = await run(join(person.home, 'bin', 'paas'), ['version']);
      expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    });

    it('hands arguments on without a shell reading them again', async () => {
      await logIn();
      await person.paas(['create', 'hello']);
      const value = "$(touch hacked) `touch hacked` ; ' \" * \\ \n two";
      await person.paas(['config:set', '-a', 'hello', `ODD=${value}`]);
      expect(platform.config).toEqual({ ODD: value });
    });
  });

  describe('what is typed', () => {
    it('without a command shows all of them, with exit codes', async () => {
      const { code, stdout } = await person.paas([]);
      expect(code).toBe(0);
      expect(stdout).toContain('config:set');
      expect(stdout).toContain('130  ended with Ctrl-C');
    });

    it.each([['lgos', 'paas logs'], ['config:st', 'paas config:set'], ['acess', undefined]])('%s is refused with code 2', async (typed, meant) => {
      const { code, stdout, stderr } = await person.paas([typed]);
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toContain(`There is no command "${typed}".`);
      if (meant !== undefined) expect(stderr).toContain(`Did you mean \`${meant}\``);
    });

    it('refuses a password as an argument, says why, and does not repeat it', async () => {
      const { code, stderr } = await person.paas(['login', '--password', 'hunter2']);
      expect(code).toBe(2);
      expect(stderr).toContain('everybody on this machine could read it');
      expect(stderr).not.toContain('hunter2');
    });

    it('tells what a command does although its arguments are missing', async () => {
      const { code, stdout } = await person.paas(['config:get', '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain('paas config:get NAME');
    });
  });

  describe('an account', () => {
    it('is made and used without a terminal', async () => {
      const signup = await person.paas(['signup', '--email', 'ada@example.com', '--password-stdin'], { input: smallPlatformPassword });
      expect(signup.code).toBe(0);
      const { code, stdout } = await person.paas(['whoami']);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'ada@example.com\n' });
    });

    it('takes the password from PAAS_PASSWORD, and without any says how to give one', async () => {
      expect((await person.paas(['login', '-e', 'ada@example.com'], { env: { PAAS_PASSWORD: smallPlatformPassword } })).code).toBe(0);
      const without = await person.paas(['login', '-e', 'ada@example.com']);
      expect(without.code).toBe(2);
      expect(without.stderr).toContain('--password-stdin');
    });

    it('is kept in a file that only its owner can read, by host', async () => {
      await logIn();
      expect((await stat(credentialsFile())).mode & 0o777).toBe(0o600);
      expect((await stat(join(person.home, '.config/paas'))).mode & 0o777).toBe(0o700);
      const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: object };
      expect(Object.keys(stored.hosts)).toEqual([platform.host]);
    });

    it('is where the last login was, also without PAAS_API_URL', async () => {
      await logIn();
      expect((await person.paas(['whoami'], { env: { PAAS_API_URL: '' } })).stdout).toBe('ada@example.com\n');
    });

    it('with a wrong password is refused with code 3 and nothing is stored', async () => {
      const { code, stderr } = await person.paas(['login', '-e', 'ada@example.com', '--password-stdin'], { input: 'wrong password' });
      expect(code).toBe(3);
      expect(stderr).toContain('The email or the password is wrong.');
      await expect(stat(credentialsFile())).rejects.toThrow('ENOENT');
    });

    it('is forgotten by logout, after which commands end with code 3 and say how to log in', async () => {
      await logIn();
      expect((await person.paas(['logout'])).code).toBe(0);
      const { code, stderr } = await person.paas(['apps']);
      expect(code).toBe(3);
      expect(stderr).toContain('paas login');
    });

    it('serves CI by PAAS_TOKEN, which is stored nowhere', async () => {
      await logIn();
      const stored = JSON.parse(await readFile(credentialsFile(), 'utf8')) as { hosts: Record<string, { access_token: string }> };
      await person.paas(['logout']);
      const token = stored.hosts[platform.host]?.access_token ?? '';
      expect((await person.paas(['whoami'], { env: { PAAS_TOKEN: token } })).stdout).toBe('ada@example.com\n');
      expect(await readFile(credentialsFile(), 'utf8')).not.toContain(token);
    });
  });

  describe('an expired access token', () => {
    it('is refreshed once when eight commands run at once, and none of them fails', async () => {
      platform.tokenSeconds = 1;
      await logIn();
      platform.tokenSeconds = 3600;
      const results = await Promise.all(Array.from({ length: 8 }, () => person.paas(['whoami'])));
      expect(results.map(({ code }) => code)).toEqual(Array(8).fill(0));
      expect(platform.refreshes).toEqual({ good: 1, reused: 0 });
    });

    it('that the platform no longer takes is refreshed though its time is not over', async () => {
      await logIn();
      platform.expireTokens();
      expect((await person.paas(['whoami'])).code).toBe(0);
      expect(platform.refreshes).toEqual({ good: 1, reused: 0 });
    });
  });

  describe('a platform that does not answer as it should', () => {
    it('is said to be out of reach with code 6, with how to start it', async () => {
      const { code, stderr } = await person.paas(['status', '--host', `http://localhost:${await freePort()}`]);
      expect(code).toBe(6);
      expect(stderr).toContain('nothing listens there');
      expect(stderr).toContain('npm start');
    });

    it('is told apart from another program on that port', async () => {
      const other = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<h1>Hello</h1>')).listen(0, '127.0.0.1');
      await once(other, 'listening');
      const address = other.address();
      const port = typeof address === 'object' ? address?.port : undefined;
      const { code, stderr } = await person.paas(['status', '--host', `http://127.0.0.1:${port}`]);
      other.close();
      expect(code).toBe(6);
      expect(stderr).toContain('not as a paas platform does');
    });
  });

  describe('an SSH key', () => {
    async function makeKey(name = 'id_ed25519'): Promise<string> {
      await mkdir(join(person.home, '.ssh'), { recursive: true });
      const path = join(person.home, '.ssh', name);
      await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'ada@laptop', '-f', path]);
      return path;
    }

    it('is found in ~/.ssh and registered under its comment, and its fingerprint is that of ssh-keygen', async () => {
      const path = await makeKey();
      await logIn();
      const { code, stdout } = await person.paas(['keys:add']);
      expect(code).toBe(0);
      expect((await run('ssh-keygen', ['-lf', path])).stdout).toContain(stdout.trim());
      expect((await person.paas(['keys'])).stdout).toContain('ada@laptop');
    });

    it('added twice is fine', async () => {
      await makeKey();
      await logIn();
      await person.paas(['keys:add']);
      const { code, stderr } = await person.paas(['keys:add']);
      expect(code).toBe(0);
      expect(stderr).toContain('registered already');
    });

    it('is never sent when it is the private one', async () => {
      const path = await makeKey();
      await logIn();
      const { code, stderr } = await person.paas(['keys:add', path]);
      expect(code).toBe(2);
      expect(stderr).toContain(`${path}.pub`);
    });

    it('that is missing is asked for in words where there is no terminal', async () => {
      await logIn();
      const { code, stderr } = await person.paas(['keys:add']);
      expect(code).toBe(1);
      expect(stderr).toContain('ssh-keygen -t ed25519');
    });
  });

  describe('an app', () => {
    it('becomes the git remote paas of the repository, and is then meant by every command there', async () => {
      await logIn();
      const cwd = await repository();
      const { code, stdout, stderr } = await person.paas(['create', 'hello'], { cwd });
      expect(code).toBe(0);
      expect(stdout).toBe('http://hello.apps.localhost:8080 | ssh://git@127.0.0.1:2222/hello.git\n');
      expect(stderr).toContain('git push paas main');
      expect((await run('git', ['-C', cwd, 'remote', 'get-url', 'paas'])).stdout).toBe('ssh://git@127.0.0.1:2222/hello.git\n');
      expect((await person.paas(['info'], { cwd })).stdout).toMatch(/^Name: +hello$/m);
    });

    it('is not made when the remote points elsewhere already; -r picks another', async () => {
      await logIn();
      const cwd = await repository();
      await person.paas(['create', 'hello'], { cwd });
      const second = await person.paas(['create', 'other'], { cwd });
      expect(second.code).toBe(5);
      expect(second.stderr).toContain('hello.git');
      expect((await person.paas(['apps', '--json'])).stdout).not.toContain('"other"');
      expect((await person.paas(['create', 'other', '-r', 'staging'], { cwd })).code).toBe(0);
      expect((await person.paas(['info', '-r', 'staging', '--json'], { cwd })).stdout).toContain('"name": "other"');
    });

    it('is made outside of a repository too, with a hint', async () => {
      await logIn();
      const { code, stderr } = await person.paas(['create', 'hello']);
      expect(code).toBe(0);
      expect(stderr).toContain('paas git:remote -a hello');
    });

    it('is named by -a before PAAS_APP before the remote', async () => {
      await logIn();
      const cwd = await repository();
      for (const name of ['one', 'two']) await person.paas(['create', name, '--no-remote'], { cwd });
      await person.paas(['create', 'three'], { cwd });
      const nameOf = async (args: readonly string[], env = {}) => {
        const { stdout } = await person.paas(['info', '--json', ...args], { cwd, env });
        return (JSON.parse(stdout) as { name: string }).name;
      };
      expect(await nameOf([])).toBe('three');
      expect(await nameOf([], { PAAS_APP: 'two' })).toBe('two');
      expect(await nameOf(['-a', 'one'], { PAAS_APP: 'two' })).toBe('one');
      expect(await nameOf(['-r', 'paas'], { PAAS_APP: 'two' })).toBe('three');
    });

    it('that nobody named is asked for with code 2', async () => {
      await logIn();
      const { code, stderr } = await person.paas(['info']);
      expect(code).toBe(2);
      expect(stderr).toContain('-a NAME');
    });

    it('that does not exist ends with code 4, a taken name with 5', async () => {
      await logIn();
      expect((await person.paas(['config', '-a', 'nowhere'])).code).toBe(4);
      await person.paas(['create', 'hello']);
      expect((await person.paas(['create', 'hello'])).code).toBe(5);
    });

    it('is listed with all others, over all pages', async () => {
      await logIn();
      for (const name of ['one', 'two', 'three']) await person.paas(['create', name]);
      const { stdout } = await person.paas(['apps', '--json']);
      expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)).toEqual(['one', 'two', 'three']);
    });

    it('is only deleted under its own name', async () => {
      await logIn();
      await person.paas(['create', 'hello']);
      expect((await person.paas(['destroy', '-a', 'hello', '-c', 'helo'])).code).toBe(2);
      expect((await person.paas(['destroy', '-a', 'hello'])).code).toBe(2);
      expect((await person.paas(['destroy', '-c', 'hello'])).code).toBe(0);
      expect((await person.paas(['apps', '--json'])).stdout).toBe('[]\n');
    });
  });

  describe('variables', () => {
    beforeEach(async () => {
      await logIn();
      await person.paas(['create', 'hello']);
    });

    it('are set, shown, read one by one and removed; what is set is not said again', async () => {
      const set = await person.paas(['config:set', '-a', 'hello', 'TOKEN=s3cret=value', 'EMPTY=']);
      expect(set.code).toBe(0);
      expect(set.stdout + set.stderr).not.toContain('s3cret');
      expect((await person.paas(['config', '-a', 'hello'])).stdout).toBe('EMPTY:\nTOKEN:  s3cret=value\n');
      expect((await person.paas(['config:get', '-a', 'hello', 'TOKEN'])).stdout).toBe('s3cret=value\n');
      await person.paas(['config:unset', '-a', 'hello', 'TOKEN']);
      expect((await person.paas(['config:get', '-a', 'hello', 'TOKEN'])).code).toBe(4);
    });

    it('come from a file or standard input, so that they are in no history', async () => {
      await writeFile(join(person.home, 'env'), '# a comment\nONE=1\nTWO="a b"\n');
      await person.paas(['config:set', '-a', 'hello', '-f', 'env']);
      await person.paas(['config:set', '-a', 'hello', '-f', '-'], { input: 'THREE=3\n' });
      expect(platform.config).toEqual({ ONE: '1', TWO: 'a b', THREE: '3' });
    });

    it('are not repeated when they are typed wrong', async () => {
      const { code, stderr } = await person.paas(['config:set', '-a', 'hello', 'ONE=1', 's3cret']);
      expect(code).toBe(2);
      expect(stderr).toContain('Argument 2');
      expect(stderr).not.toContain('s3cret');
      expect(platform.config).toEqual({});
    });

    it('are quoted for a shell', async () => {
      platform.config['ODD'] = "it's $HOME\nand more";
      const { stdout } = await person.paas(['config', '-s', '-a', 'hello']);
      const echoed = await run('sh', ['-c', `${stdout}printf %s "$ODD"`]);
      expect(echoed.stdout).toBe(platform.config['ODD']);
    });
  });

  describe('following', () => {
    beforeEach(async () => {
      await logIn();
      await person.paas(['create', 'hello']);
    });

    it('a build prints each line once though the connection breaks twice, and ends with the build', async () => {
      platform.buildLog = { lines: ['one', 'two', 'three', 'four'], breaksAfter: new Set([1, 3]), failed: false };
      const { code, stdout } = await person.paas(['builds:logs', '-a', 'hello']);
      expect({ code, stdout }).toEqual({ code: 0, stdout: 'one\ntwo\nthree\nfour\n' });
    });

    it('a build that fails ends with code 1 and its cause', async () => {
      platform.buildLog = { lines: ['one'], breaksAfter: new Set(), failed: true };
      const { code, stderr } = await person.paas(['builds:logs', '-a', 'hello']);
      expect(code).toBe(1);
      expect(stderr).toContain('npm ci failed with exit code 1.');
    });

    const entry = (ms: number, process: string, message: string) => {
      const ts = new Date(Date.UTC(2026, 2, 1, 12, 0, 0, ms)).toISOString();
      return { ts, process, stream: 'stdout' as const, release_version: 1, message };
    };

    it('a log prints each entry once over a break, also equal ones and late ones, until Ctrl-C ends it with 130', async () => {
      const entries = [entry(5, 'web.1', 'same'), entry(5, 'web.1', 'same'), entry(4, 'web.2', 'late'), entry(5, 'web.1', 'same'), entry(9, 'web.1', 'last')];
      platform.appLog = { entries: entries.toSorted((one, other) => (one.ts < other.ts ? -1 : 1)), breaksAfter: new Set([1, 2]) };
      const child = person.start(['logs', '-t', '-a', 'hello']);
      let stdout = '';
      let stderr = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
      });
      for await (const chunk of child.stdout ?? []) {
        stdout += String(chunk);
        if (stdout.includes('last\n')) child.kill('SIGINT');
      }
      if (child.exitCode === null) await once(child, 'exit');
      expect(stdout.split('\n').map((line) => line.split(' ').at(-1))).toEqual(['late', 'same', 'same', 'same', 'last', '']);
      expect(child.exitCode).toBe(130);
      expect(stderr).not.toContain('    at ');
    });

    it('ends quietly when nobody reads any more', async () => {
      platform.appLog = { entries: Array.from({ length: 5000 }, (_, index) => entry(index, 'web.1', `line ${index} ${'x'.repeat(100)}`)), breaksAfter: new Set() };
      const child = person.start(['logs', '-n', '5000', '-a', 'hello']);
      let stderr = '';
      child.stderr?.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
      });
      child.stdout?.once('data', () => child.stdout?.destroy());
      const [code] = (await once(child, 'exit')) as [number | null];
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    });

    it('no colour reaches a pipe', async () => {
      platform.appLog = { entries: [entry(1, 'web.1', 'plain')], breaksAfter: new Set() };
      const { stdout } = await person.paas(['logs', '-a', 'hello']);
      expect(stdout).toBe('2026-03-01T12:00:00.001Z web.1: plain\n');
    });
  });
});
