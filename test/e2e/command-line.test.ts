import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CommandResult, createPerson, type Person } from '#cli/testing/person.ts';
import { nodeApp, slowApp, unbuildableApp } from '#test/support/builds/sample-apps.ts';
import { type RunningPlatform, removePlatform, startPlatform } from '#test/support/platform/running-platform.ts';
import { visit } from '#test/support/platform/user.ts';
import { run, runChecked } from '#test/support/run-program.ts';

const identity = {
  GIT_AUTHOR_NAME: 'Ada',
  GIT_AUTHOR_EMAIL: 'ada@example.com',
  GIT_COMMITTER_NAME: 'Ada',
  GIT_COMMITTER_EMAIL: 'ada@example.com',
};

/** In order, as one person does it: each test goes on where the one before ended. */
describe('paas against a real platform', () => {
  let platform: RunningPlatform;
  let person: Person;
  let cwd: string;
  let env: Record<string, string>;

  beforeAll(async () => {
    platform = await startPlatform();
    person = await createPerson();
    cwd = join(person.home, 'hello');
    // ssh looks for keys in the home directory of the account, not in HOME: this one looks in HOME, asks nothing, and is otherwise the same.
    await mkdir(join(person.home, 'bin'));
    await mkdir(join(person.home, '.ssh'), { mode: 0o700 });
    const options = '-F none -i "$HOME/.ssh/id_ed25519" -o IdentitiesOnly=yes -o UserKnownHostsFile="$HOME/.ssh/known_hosts"';
    await writeFile(join(person.home, 'bin/ssh'), `#!/bin/sh\nexec /usr/bin/ssh ${options} "$@"\n`);
    await chmod(join(person.home, 'bin/ssh'), 0o755);
    env = {
      ...identity,
      HOME: person.home,
      PATH: `${join(person.home, 'bin')}:${process.env['PATH'] ?? ''}`,
      GIT_CONFIG_GLOBAL: '/dev/null',
      PAAS_API_URL: platform.baseUrl,
      GIT_SSH_COMMAND: 'ssh -o StrictHostKeyChecking=accept-new',
    };
    await runChecked('git', ['init', '-q', '-b', 'main', cwd], { env });
    await runChecked('ssh-keygen', [
      '-q',
      '-t',
      'ed25519',
      '-N',
      '',
      '-C',
      'ada@laptop',
      '-f',
      join(person.home, '.ssh/id_ed25519'),
    ]);
  });
  afterAll(async () => {
    await person.remove();
    await removePlatform(platform);
  });

  const paas = (...args: readonly string[]): Promise<CommandResult> => person.paas(args, { cwd, env });
  async function done(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await paas(...args);
    expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout;
  }
  const json = async <Value>(...args: readonly string[]): Promise<Value> => JSON.parse(await done(...args, '--json')) as Value;
  async function commit(files: Record<string, string>): Promise<void> {
    for (const [path, content] of Object.entries(files)) await writeFile(join(cwd, path), content);
    await runChecked('git', ['-C', cwd, 'add', '-A'], { env });
    await runChecked('git', ['-C', cwd, 'commit', '-q', '-m', 'Change'], { env });
  }
  const push = () => run('git', ['push', 'paas', 'main'], { cwd, env });

  it('puts an app live in four commands', async () => {
    const signup = await person.paas(['signup', '--email', 'ada@example.com', '--password-stdin'], {
      cwd,
      env,
      input: 'correct horse battery\n',
    });
    expect(signup.code).toBe(0);
    await done('keys:add');
    await done('create', 'hello');
    await commit(nodeApp('one'));
    const pushed = await push();
    expect(pushed.stderr).toContain('deployed');
    expect(pushed.code).toBe(0);
    expect(await visit(platform, 'hello')).toEqual({ status: 200, body: 'one' });
  });

  it('runs commands in the app, with its environment, input, exit code and a terminal', async () => {
    await done('config:set', 'GREETING=hello there');
    const shell = await person.paas(['run', 'cat; echo "$GREETING from $DYNO"; exit 9'], { cwd, env, input: 'piped\n' });
    expect(shell).toMatchObject({ code: 9, stdout: 'piped\nhello there from run\n' });
    const words = await person.paas(['run', '--no-input', 'printf', '%s|', "it's", '$HOME'], { cwd, env });
    expect(words).toMatchObject({ code: 0, stdout: "it's|$HOME|" });
    // script gives the command line a terminal.
    const launcher = new URL('../../cli/paas', import.meta.url).pathname;
    const session = spawn('script', ['-qec', `stty columns 90 rows 20; '${launcher}' run bash`, '/dev/null'], {
      cwd,
      env: { ...person.env, ...env },
    });
    let output = '';
    let isTyped = false;
    session.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString();
      if (!isTyped && output.includes('$ ')) isTyped = session.stdin.write('stty size; tty -s && echo typed; exit 4\n');
    });
    const [code] = (await once(session, 'close')) as [number];
    session.stdin.destroy();
    expect(output.replaceAll('\r', '')).toContain('20 90\ntyped\n');
    expect(code).toBe(4);
  });

  it('shows the account, the key and the app', async () => {
    expect(await done('whoami')).toBe('ada@example.com\n');
    const { stdout } = await runChecked('ssh-keygen', ['-lf', join(person.home, '.ssh/id_ed25519')]);
    expect(await done('keys')).toContain(stdout.split(' ')[1]);
    expect(await done('apps')).toMatch(/^hello +v2 /);
    expect(await done('info')).toMatch(/^Release: +v2$/m);
    expect(await done('status')).toMatch(/^Running: +web 1 of 1$/m);
    expect(await done('ps')).toMatch(/^web\.1 +up +v2 /m);
    expect(await done('open')).toBe(`http://hello.apps.localhost:${platform.httpPort}\n`);
  });

  it('finds no problem with doctor', async () => {
    const findings = await json<{ check: string; ok: boolean; detail: string }[]>('doctor');
    expect(findings.filter(({ ok }) => !ok)).toEqual([]);
    expect(findings.map(({ check }) => check)).toEqual(['node', 'git', 'ssh', 'platform', 'login', 'key', 'remote', 'git push']);
  });

  it('shows what the build and the app said', async () => {
    expect(await done('builds')).toMatch(/^[0-9a-f]{8} +succeeded +[0-9a-f]{7} +main +Cold /);
    const [build] = await json<{ id: string }[]>('builds');
    const log = await done('builds:logs', build?.id.slice(0, 8) ?? '');
    expect(log).toContain('-----> Node.js app detected');
    expect(log).toContain('deployed');
    expect(await done('logs', '-p', 'web')).toMatch(/Z web\.1: listening on \d+$/m);
    expect(await done('logs', '--release', 'v1')).toContain('listening on');
  });

  it('changes variables, each change a release', async () => {
    const set = await paas('config:set', 'GREETING=hello world', 'TOKEN=s3cret');
    expect(set.code).toBe(0);
    expect(set.stderr).toContain('v3 is rolling out');
    expect(await done('config')).toBe('GREETING:  hello world\nTOKEN:     s3cret\n');
    await done('config:unset', 'TOKEN');
    expect(await done('config:get', 'GREETING')).toBe('hello world\n');
    await expect
      .poll(async () => (await visit(platform, 'hello', '/env')).body, { timeout: 60_000 })
      .toContain('"GREETING":"hello world"');
    expect((await paas('config:get', 'TOKEN')).code).toBe(4);
  });

  it('rolls back and waits until the earlier release is live again', async () => {
    await commit(nodeApp('two'));
    expect((await push()).code).toBe(0);
    expect((await visit(platform, 'hello')).body).toBe('two');
    const rolledBack = await paas('rollback', 'v1');
    expect(rolledBack.stderr).toMatch(/ 100% live\n$/);
    expect(rolledBack.code).toBe(0);
    expect((await visit(platform, 'hello')).body).toBe('one');
    const [newest] = await json<{ kind: string; current: boolean }[]>('releases', '-n', '1');
    expect(newest).toMatchObject({ kind: 'rollback', current: true });
  });

  it('scales and restarts', async () => {
    await done('ps:scale', 'web=2');
    await expect.poll(() => done('status'), { timeout: 60_000 }).toMatch(/^Running: +web 2 of 2$/m);
    await done('restart');
    expect((await paas('ps:scale', 'nothing=1')).code).not.toBe(0);
  });

  it('follows a running build until it is live; of one that failed it shows what it printed', async () => {
    await commit(slowApp('three', 3));
    const pushing = push();
    await expect
      .poll(async () => (await json<{ status: string }[]>('builds', '-n', '1'))[0]?.status, { timeout: 60_000 })
      .toBe('running');
    const followed = await paas('builds:logs');
    expect(followed.stdout).toContain('building slowly');
    expect(followed.stdout).toContain('deployed');
    expect(followed.code).toBe(0);
    expect((await pushing).code).toBe(0);

    await commit(unbuildableApp());
    expect((await push()).code).toBe(1);
    const old = await paas('builds:logs');
    expect(old.stdout).toContain('the build is broken');
    expect(old.code).toBe(0);
  });

  it('cancels a running build, and the old release serves on', async () => {
    await commit(slowApp('never', 600));
    const pushing = push();
    await expect
      .poll(async () => (await json<{ status: string }[]>('builds', '-n', '1'))[0]?.status, { timeout: 60_000 })
      .toBe('running');
    await done('builds:cancel');
    expect((await pushing).code).toBe(1);
    expect((await json<{ status: string }[]>('builds', '-n', '1'))[0]?.status).toBe('canceled');
    expect(await paas('builds:cancel')).toMatchObject({
      code: 5,
      stderr: expect.stringContaining('No build of hello is running.'),
    });
    expect((await visit(platform, 'hello')).body).toBe('three');
  });

  it('purges the build cache once, and says so when there is none', async () => {
    expect(await done('builds:cache')).toMatch(/^Volume: +build-cache-[0-9a-f-]{36}$/m);
    expect(await json('builds:cache:purge')).toMatchObject({ flushed: true });
    expect(await json('builds:cache:purge')).toMatchObject({ flushed: false });
  });

  it('follows the log across a restart of the app, with every line of it in its place', async () => {
    const following = person.start(['logs', '-t', '-n', '1', '-p', 'web'], { cwd, env });
    let seen = '';
    following.stdout?.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
    await expect.poll(() => seen, { timeout: 30_000 }).not.toBe('');
    await done('restart');
    await expect.poll(() => seen.match(/listening on/g)?.length ?? 0, { timeout: 60_000 }).toBeGreaterThanOrEqual(2);
    following.kill('SIGINT');
    await expect.poll(() => following.exitCode).toBe(130);
    expect(await done('logs', '-p', 'web', '-n', '1000')).toContain(seen);
  });

  it('deletes the app and brings it back with its variables', async () => {
    await done('config:set', 'KEPT=yes');
    await done('destroy', '-c', 'hello');
    await expect.poll(async () => (await visit(platform, 'hello')).status, { timeout: 30_000 }).toBe(404);
    expect(await done('apps', '--deleted')).toMatch(/^hello .*restorable until \d{4}-\d\d-\d\d/);
    await done('restore');
    await expect.poll(async () => (await visit(platform, 'hello')).status, { timeout: 60_000 }).toBe(200);
    expect(await done('config:get', 'KEPT')).toBe('yes\n');
  });

  it('takes the key away, and the push is refused', async () => {
    const [key] = await json<{ fingerprint: string }[]>('keys');
    await done('keys:remove', key?.fingerprint ?? '');
    await commit(nodeApp('four'));
    const refused = await push();
    expect(refused.code).not.toBe(0);
    const { code, stdout } = await paas('doctor');
    expect(code).toBe(1);
    expect(stdout).toContain('paas keys:add');
  });
});
