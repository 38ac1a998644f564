import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';
import { gitSshEnv, type KeyFile, makeKey, makeWorkTree, type Ran, run, ssh, sshOptions } from '#test/support/ssh/ssh-client.ts';

let server: TestSshServer;
let ada: Principal;
let key: KeyFile;
let workTree: string;

beforeAll(async () => {
  server = await openTestSshServer();
  ada = newPrincipal('ada@example.com');
  key = await makeKey(server.directory, 'ada', 'ed25519');
  server.addKey(key.publicKey, ada);
  workTree = path.join(server.directory, 'work');
  await makeWorkTree(workTree, { 'readme.txt': 'hello' });
});
afterAll(() => server.close());

const url = (app: string): string => `ssh://git@127.0.0.1:${server.port}/${app}.git`;
const git = (args: readonly string[], more: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  run('git', args, { cwd: workTree, env: { ...gitSshEnv(server.port, key, more), ...env } });

describe('git', () => {
  test.each(['version=0', 'version=2'])('pushes, fetches and clones with protocol %s', async (version) => {
    const app = `app-${version.at(-1)}`;
    await server.addApp(app, ada);
    const protocol = ['-c', `protocol.version=${version.at(-1)}`];
    const pushed = await git([...protocol, 'push', url(app), 'main']);
    expect(pushed).toMatchObject({ status: 0, stderr: expect.stringContaining('[new branch]      main -> main') });
    const copy = path.join(server.directory, `copy-${app}`);
    expect(await git([...protocol, 'clone', '--quiet', url(app), copy])).toMatchObject({ status: 0 });
    expect(await readFile(path.join(copy, 'readme.txt'), 'utf8')).toBe('hello');
  });

  test('the GIT_PROTOCOL of the client reaches the git server', async () => {
    await server.addApp('traced', ada);
    await git(['push', '--quiet', url('traced'), 'main']);
    const listed = await git(['-c', 'protocol.version=2', 'ls-remote', url('traced')], [], { GIT_TRACE_PACKET: '1' });
    expect(listed.stderr).toContain('version 2');
  });

  test('incompressible data is pushed and cloned unchanged', async () => {
    const directory = await server.addApp('large', ada);
    const tree = path.join(server.directory, 'large');
    await makeWorkTree(tree, { 'noise.bin': randomBytes(8 * 1024 * 1024) });
    const pushed = await run('git', ['push', url('large'), 'main'], { cwd: tree, env: gitSshEnv(server.port, key) });
    expect(pushed.status, pushed.stderr).toBe(0);
    expect((await run('git', ['fsck', '--full'], { cwd: directory })).status).toBe(0);
    const copy = path.join(server.directory, 'large-copy');
    expect(await git(['clone', '--quiet', url('large'), copy])).toMatchObject({ status: 0 });
    expect((await readFile(path.join(copy, 'noise.bin'))).equals(await readFile(path.join(tree, 'noise.bin')))).toBe(true);
  });

  test('a transfer survives a key re-exchange every megabyte', async () => {
    await server.addApp('rekeyed', ada);
    const tree = path.join(server.directory, 'rekeyed');
    await makeWorkTree(tree, { 'noise.bin': randomBytes(6 * 1024 * 1024) });
    const env = gitSshEnv(server.port, key, ['-o', 'RekeyLimit=1M']);
    expect(await run('git', ['push', '--quiet', url('rekeyed'), 'main'], { cwd: tree, env })).toMatchObject({ status: 0 });
    const copy = path.join(server.directory, 'rekeyed-copy');
    expect(await git(['clone', '--quiet', url('rekeyed'), copy], ['-o', 'RekeyLimit=1M'])).toMatchObject({ status: 0 });
    expect((await readFile(path.join(copy, 'noise.bin'))).equals(await readFile(path.join(tree, 'noise.bin')))).toBe(true);
  });

  test("the answers for a missing app and for another person's app differ in the name only", async () => {
    await server.addApp('not-adas', newPrincipal('eve@example.com'));
    const [missing, foreign] = await Promise.all([git(['push', url('no-such'), 'main']), git(['push', url('not-adas'), 'main'])]);
    expect(missing.status).toBe(128);
    expect(missing.stderr).toContain('No such app: no-such. To list your apps, run: paas apps\n');
    expect(foreign.stderr.replaceAll('not-adas', 'no-such')).toBe(missing.stderr);
  });

  test('a viewer may clone but not push, and sees why', async () => {
    const viewer: Principal = { ...ada, role: 'viewer' };
    const viewersKey = await makeKey(server.directory, 'viewer', 'ed25519');
    server.addKey(viewersKey.publicKey, viewer);
    await server.addApp('shared', ada);
    await git(['push', '--quiet', url('shared'), 'main']);
    const env = gitSshEnv(server.port, viewersKey);
    expect(await run('git', ['ls-remote', url('shared')], { env })).toMatchObject({ status: 0 });
    const refused = await run('git', ['push', url('shared'), 'main:other'], { cwd: workTree, env });
    expect(refused).toMatchObject({ status: 128, stderr: expect.stringContaining('Your role "viewer" may not push.') });
  });
});

describe('keys', () => {
  test.each([
    ['ed25519', undefined],
    ['ecdsa', 256],
    ['ecdsa', 384],
    ['ecdsa', 521],
    ['rsa', 3072],
  ] as const)('a key of type %s and size %s logs in', async (type, bits) => {
    const made = await makeKey(server.directory, `key-${type}-${bits}`, type, bits);
    server.addKey(made.publicKey, ada);
    expect(await ssh(server.port, made, ['git@127.0.0.1'])).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('Hello ada@example.com'),
    });
  });

  test.each(['rsa-sha2-256', 'rsa-sha2-512'])('a client that signs only with %s logs in', async (algorithm) => {
    const made = await makeKey(server.directory, algorithm, 'rsa', 2048);
    server.addKey(made.publicKey, ada);
    expect(await ssh(server.port, made, ['git@127.0.0.1'], ['-o', `PubkeyAcceptedAlgorithms=${algorithm}`])).toMatchObject({
      status: 0,
    });
  });

  test('a client that signs with SHA-1 is refused', async () => {
    const made = await makeKey(server.directory, 'sha1', 'rsa', 2048);
    server.addKey(made.publicKey, ada);
    expect(await ssh(server.port, made, ['git@127.0.0.1'], ['-o', 'PubkeyAcceptedAlgorithms=ssh-rsa'])).toMatchObject({
      status: 255,
    });
  });

  test('a key that differs from the registered one in letter case only is refused', async () => {
    const made = await makeKey(server.directory, 'case', 'ed25519');
    const [type = '', blob = ''] = made.publicKey.split(' ');
    server.addKey(`${type} ${blob.slice(0, 30)}${blob.slice(30).toLowerCase()}`, ada);
    expect(await ssh(server.port, made, ['git@127.0.0.1'])).toMatchObject({ status: 255 });
    expect(server.lookups.at(-1)).toBe(blob);
  });

  test('an offered key is looked up only after its signature has been verified', async () => {
    const unused = await makeKey(server.directory, 'unused', 'ed25519');
    // A public key alone can be offered, but not signed with.
    const offered = await makeKey(server.directory, 'offered', 'ed25519');
    await writeFile(offered.file, await readFile(unused.file));
    server.addKey(offered.publicKey, ada);
    const known = await ssh(server.port, offered, ['git@127.0.0.1'], ['-v', '-o', 'NumberOfPasswordPrompts=0']);
    expect(known.status).toBe(255);
    expect(server.lookups).not.toContain(offered.publicKey.split(' ')[1]);
  });

  test('a client with several keys logs in with the registered one', async () => {
    const others = await Promise.all([1, 2, 3].map((n) => makeKey(server.directory, `other-${n}`, 'ed25519')));
    const identities = others.flatMap((other) => ['-i', other.file]);
    const ran = await run('ssh', [...sshOptions(server.port, undefined, identities), '-i', key.file, 'git@127.0.0.1']);
    expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('Hello ada@example.com') });
  });
});

describe('messages', () => {
  test('a person with an unregistered key is shown its fingerprint and how to register it', async () => {
    const stranger = await makeKey(server.directory, 'stranger', 'ed25519');
    const ran = await ssh(server.port, stranger, ['git@127.0.0.1']);
    const fingerprint = (await run('ssh-keygen', ['-lf', stranger.file])).stdout.split(' ')[1] ?? '';
    expect(ran.status).toBe(255);
    expect(ran.stderr).toContain(`Your SSH key is not registered:\n  ${fingerprint}\nRegister it with:\n  paas keys:add`);
    expect(ran.stderr).toContain('Permission denied (publickey)');
  });

  test('a person without a key is shown how to create one', async () => {
    const ran = await ssh(server.port, undefined, ['git@127.0.0.1']);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('ssh-keygen -t ed25519') });
  });

  test('a person who logs in with another user name than git is refused with the reason, although the key is registered', async () => {
    const ran = await ssh(server.port, key, ['root@127.0.0.1']);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('Log in as git, not as "root".') });
  });

  test('a person who offers too many keys is shown how to offer the right one', async () => {
    const many = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((n) => makeKey(server.directory, `many-${n}`, 'ed25519')));
    const ran = await run('ssh', [
      ...sshOptions(
        server.port,
        undefined,
        many.flatMap((each) => ['-i', each.file]),
      ),
      'git@127.0.0.1',
    ]);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('IdentitiesOnly=yes') });
  });

  test('a person who requests a shell is greeted and shown how to deploy, with and without a terminal', async () => {
    const plain = await ssh(server.port, key, ['git@127.0.0.1']);
    const terminal = await ssh(server.port, key, ['-tt', 'git@127.0.0.1']);
    for (const ran of [plain, terminal]) {
      expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('git push paas main') });
    }
    expect(terminal.stderr).toContain('This server provides no shell. To deploy an app:\r\n');
  });

  test.each(['ls -la', "git-receive-pack 'a.git'; id", "git-upload-archive 'a.git'", "git-receive-pack '../../etc'"])(
    'the command %j is refused with an explanation and status 128, and no shell runs it',
    async (command) => {
      const ran = await ssh(server.port, key, ['git@127.0.0.1', command]);
      expect(ran).toMatchObject({
        status: 128,
        stdout: '',
        stderr: expect.stringContaining('This server runs only git commands'),
      });
    },
  );

  test.each(['authenticate', 'transfer'])(
    'git-lfs-%s, which a hook runs before a push, is refused with what to do',
    async (word) => {
      const { status, stderr } = await ssh(server.port, key, ['git@127.0.0.1', `git-lfs-${word} a.git upload`]);
      expect([status, stderr]).toEqual([128, expect.stringContaining('paas git:source:set URL')]);
      expect(stderr).toContain('git lfs migrate export');
    },
  );

  test('git archive --remote is refused with an alternative', async () => {
    const { status, stderr } = await ssh(server.port, key, ['git@127.0.0.1', "git-upload-archive 'a.git'"]);
    expect(status).toBe(128);
    expect(stderr).toContain('Use instead: git clone --depth 1');
  });
});

describe('unsupported requests and algorithms', () => {
  test.each([
    ['a subsystem', ['-s', 'git@127.0.0.1', 'sftp']],
    ['port forwarding', ['-o', 'ExitOnForwardFailure=yes', '-N', '-R', '0:127.0.0.1:9', 'git@127.0.0.1']],
    ['a tunnel to another address', ['-W', '127.0.0.1:9', 'git@127.0.0.1']],
  ])('%s is refused', async (_what, args) => {
    const ran = await ssh(server.port, key, args);
    expect(ran.status).not.toBe(0);
    expect(ran.stdout).toBe('');
  });

  test.each(['diffie-hellman-group14-sha1', 'diffie-hellman-group14-sha256'])(
    'the key exchange %s is not offered',
    async (name) => {
      const ran = await ssh(server.port, key, ['git@127.0.0.1'], ['-o', `KexAlgorithms=${name}`]);
      expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('no matching key exchange method found') });
    },
  );

  test.each([
    ['Ciphers', 'aes128-cbc', 'no matching cipher'],
    ['MACs', 'hmac-sha1', 'no matching MAC'],
    ['HostKeyAlgorithms', 'ssh-rsa', 'no matching host key type'],
  ])('%s=%s is not offered', async (option, name, message) => {
    const more = ['-o', `${option}=${name}`, ...(option === 'MACs' ? ['-o', 'Ciphers=aes128-ctr'] : [])];
    const ran = await ssh(server.port, key, ['git@127.0.0.1'], more);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining(message) });
  });

  test.each(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512', 'rsa-sha2-256'])(
    'the server has a host key for %s',
    async (name) => {
      expect(await ssh(server.port, key, ['git@127.0.0.1'], ['-o', `HostKeyAlgorithms=${name}`])).toMatchObject({ status: 0 });
    },
  );

  test('strict key exchange is on, which prevents prefix truncation (Terrapin)', async () => {
    expect((await ssh(server.port, key, ['git@127.0.0.1'], ['-vv'])).stderr).toContain('kex-strict-s-v00@openssh.com');
  });
});

test('several commands share one connection, and a key that is removed meanwhile runs no more of them', async () => {
  const passing = await makeKey(server.directory, 'passing', 'ed25519');
  server.addKey(passing.publicKey, ada);
  const control = path.join(server.directory, 'control');
  const shared = ['-o', `ControlPath=${control}`, '-o', 'ControlMaster=auto', '-o', 'ControlPersist=60'];
  try {
    const greeted = await Promise.all([1, 2, 3].map(() => ssh(server.port, passing, ['git@127.0.0.1'], shared)));
    for (const ran of greeted) expect(ran.status).toBe(0);
    server.removeKey(passing.publicKey);
    const refused = await ssh(server.port, passing, ['git@127.0.0.1'], shared);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('Your SSH key is no longer registered') });
  } finally {
    await ssh(server.port, passing, ['-O', 'exit', 'git@127.0.0.1'], shared);
  }
});
