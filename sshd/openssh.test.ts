import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Principal } from '#shared/core/accounts/principals.ts';
import { gitSshEnv, type KeyFile, makeKey, makeWorkTree, type Ran, run, ssh, sshOptions } from '#test/support/ssh/ssh-client.ts';
import { openTestSshServer, somebody, type TestSshServer } from '#test/support/ssh/test-ssh-server.ts';

let door: TestSshServer;
let ada: Principal;
let key: KeyFile;
let workTree: string;

beforeAll(async () => {
  door = await openTestSshServer();
  ada = somebody('ada@example.com');
  key = await makeKey(door.directory, 'ada', 'ed25519');
  door.addKey(key.publicKey, ada);
  workTree = path.join(door.directory, 'work');
  await makeWorkTree(workTree, { 'readme.txt': 'hello' });
});
afterAll(() => door.close());

const url = (app: string): string => `ssh://git@127.0.0.1:${door.port}/${app}.git`;
const git = (args: readonly string[], more: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Ran> =>
  run('git', args, { cwd: workTree, env: { ...gitSshEnv(door.port, key, more), ...env } });

describe('git', () => {
  test.each(['version=0', 'version=2'])('pushes, fetches and clones with protocol %s', async (version) => {
    const app = `app-${version.at(-1)}`;
    await door.addApp(app, ada);
    const protocol = ['-c', `protocol.version=${version.at(-1)}`];
    const pushed = await git([...protocol, 'push', url(app), 'main']);
    expect(pushed).toMatchObject({ status: 0, stderr: expect.stringContaining('[new branch]      main -> main') });
    const copy = path.join(door.directory, `copy-${app}`);
    expect(await git([...protocol, 'clone', '--quiet', url(app), copy])).toMatchObject({ status: 0 });
    expect(await readFile(path.join(copy, 'readme.txt'), 'utf8')).toBe('hello');
  });

  test('GIT_PROTOCOL of the client reaches the git server', async () => {
    await door.addApp('traced', ada);
    await git(['push', '--quiet', url('traced'), 'main']);
    const listed = await git(['-c', 'protocol.version=2', 'ls-remote', url('traced')], [], { GIT_TRACE_PACKET: '1' });
    expect(listed.stderr).toContain('version 2');
  });

  test('what does not compress arrives whole and comes back the same', async () => {
    const directory = await door.addApp('large', ada);
    const tree = path.join(door.directory, 'large');
    await makeWorkTree(tree, { 'noise.bin': randomBytes(24 * 1024 * 1024) });
    const pushed = await run('git', ['push', url('large'), 'main'], { cwd: tree, env: gitSshEnv(door.port, key) });
    expect(pushed.status, pushed.stderr).toBe(0);
    expect((await run('git', ['fsck', '--full'], { cwd: directory })).status).toBe(0);
    const copy = path.join(door.directory, 'large-copy');
    expect(await git(['clone', '--quiet', url('large'), copy])).toMatchObject({ status: 0 });
    expect((await readFile(path.join(copy, 'noise.bin'))).equals(await readFile(path.join(tree, 'noise.bin')))).toBe(true);
  });

  test('a transfer survives the client changing keys every megabyte', async () => {
    await door.addApp('rekeyed', ada);
    const tree = path.join(door.directory, 'rekeyed');
    await makeWorkTree(tree, { 'noise.bin': randomBytes(12 * 1024 * 1024) });
    const env = gitSshEnv(door.port, key, ['-o', 'RekeyLimit=1M']);
    expect(await run('git', ['push', '--quiet', url('rekeyed'), 'main'], { cwd: tree, env })).toMatchObject({ status: 0 });
    const copy = path.join(door.directory, 'rekeyed-copy');
    expect(await git(['clone', '--quiet', url('rekeyed'), copy], ['-o', 'RekeyLimit=1M'])).toMatchObject({ status: 0 });
    expect((await readFile(path.join(copy, 'noise.bin'))).equals(await readFile(path.join(tree, 'noise.bin')))).toBe(true);
  });

  test("an app that does not exist and somebody else's are told apart by nothing but the name", async () => {
    await door.addApp('not-adas', somebody('eve@example.com'));
    const [missing, foreign] = await Promise.all([git(['push', url('no-such'), 'main']), git(['push', url('not-adas'), 'main'])]);
    expect(missing.status).toBe(128);
    expect(missing.stderr).toContain('No such app, or it is not yours: no-such. `paas apps` lists yours.\n');
    expect(foreign.stderr.replaceAll('not-adas', 'no-such')).toBe(missing.stderr);
  });

  test('a viewer may clone but not push, and reads why', async () => {
    const viewer: Principal = { ...ada, role: 'viewer' };
    const viewersKey = await makeKey(door.directory, 'viewer', 'ed25519');
    door.addKey(viewersKey.publicKey, viewer);
    await door.addApp('shared', ada);
    await git(['push', '--quiet', url('shared'), 'main']);
    const env = gitSshEnv(door.port, viewersKey);
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
  ] as const)('%s %s logs in', async (type, bits) => {
    const made = await makeKey(door.directory, `key-${type}-${bits}`, type, bits);
    door.addKey(made.publicKey, ada);
    expect(await ssh(door.port, made, ['git@127.0.0.1'])).toMatchObject({
      status: 0,
      stderr: expect.stringContaining('Hello ada@example.com'),
    });
  });

  test.each(['rsa-sha2-256', 'rsa-sha2-512'])('a client that signs with nothing but %s logs in', async (algorithm) => {
    const made = await makeKey(door.directory, algorithm, 'rsa', 2048);
    door.addKey(made.publicKey, ada);
    expect(await ssh(door.port, made, ['git@127.0.0.1'], ['-o', `PubkeyAcceptedAlgorithms=${algorithm}`])).toMatchObject({
      status: 0,
    });
  });

  test('a client that signs with SHA-1 is refused', async () => {
    const made = await makeKey(door.directory, 'sha1', 'rsa', 2048);
    door.addKey(made.publicKey, ada);
    expect(await ssh(door.port, made, ['git@127.0.0.1'], ['-o', 'PubkeyAcceptedAlgorithms=ssh-rsa'])).toMatchObject({
      status: 255,
    });
  });

  test('a key whose registered text differs in case only is unknown', async () => {
    const made = await makeKey(door.directory, 'case', 'ed25519');
    const [type = '', blob = ''] = made.publicKey.split(' ');
    door.addKey(`${type} ${blob.slice(0, 30)}${blob.slice(30).toLowerCase()}`, ada);
    expect(await ssh(door.port, made, ['git@127.0.0.1'])).toMatchObject({ status: 255 });
    expect(door.lookups.at(-1)).toBe(blob);
  });

  test('offering a key tells nothing: it is looked up only after its signature was found good', async () => {
    const unused = await makeKey(door.directory, 'unused', 'ed25519');
    // A public key alone can be offered, but not signed with.
    const offered = await makeKey(door.directory, 'offered', 'ed25519');
    await writeFile(offered.file, await readFile(unused.file));
    door.addKey(offered.publicKey, ada);
    const known = await ssh(door.port, offered, ['git@127.0.0.1'], ['-v', '-o', 'NumberOfPasswordPrompts=0']);
    expect(known.status).toBe(255);
    expect(door.lookups).not.toContain(offered.publicKey.split(' ')[1]);
  });

  test('with several keys the one that is registered is found', async () => {
    const others = await Promise.all([1, 2, 3].map((n) => makeKey(door.directory, `other-${n}`, 'ed25519')));
    const identities = others.flatMap((other) => ['-i', other.file]);
    const ran = await run('ssh', [...sshOptions(door.port, undefined, identities), '-i', key.file, 'git@127.0.0.1']);
    expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('Hello ada@example.com') });
  });
});

describe('words', () => {
  test('a stranger reads the fingerprint of the key and how to register it', async () => {
    const stranger = await makeKey(door.directory, 'stranger', 'ed25519');
    const ran = await ssh(door.port, stranger, ['git@127.0.0.1']);
    const fingerprint = (await run('ssh-keygen', ['-lf', stranger.file])).stdout.split(' ')[1] ?? '';
    expect(ran.status).toBe(255);
    expect(ran.stderr).toContain(
      `Nobody has registered your SSH key here:\n  ${fingerprint}\nRegister it with:\n  paas keys:add`,
    );
    expect(ran.stderr).toContain('Permission denied (publickey)');
  });

  test('who has no key reads how to make one', async () => {
    const ran = await ssh(door.port, undefined, ['git@127.0.0.1']);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('ssh-keygen -t ed25519') });
  });

  test('who logs in as somebody else than git reads so, though the key is good', async () => {
    const ran = await ssh(door.port, key, ['root@127.0.0.1']);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('Log in as git, not as "root"') });
  });

  test('who offers too many keys reads how to offer the right one', async () => {
    const many = await Promise.all([1, 2, 3, 4, 5, 6, 7].map((n) => makeKey(door.directory, `many-${n}`, 'ed25519')));
    const ran = await run('ssh', [
      ...sshOptions(
        door.port,
        undefined,
        many.flatMap((each) => ['-i', each.file]),
      ),
      'git@127.0.0.1',
    ]);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('IdentitiesOnly=yes') });
  });

  test('who asks for a shell is greeted by name and told what to do, with and without a terminal', async () => {
    const plain = await ssh(door.port, key, ['git@127.0.0.1']);
    const terminal = await ssh(door.port, key, ['-tt', 'git@127.0.0.1']);
    for (const ran of [plain, terminal]) {
      expect(ran).toMatchObject({ status: 0, stderr: expect.stringContaining('git push paas main') });
    }
    expect(terminal.stderr).toContain('There is no shell here; you push apps to this address:\r\n');
  });

  test.each(['ls -la', "git-receive-pack 'a.git'; id", "git-upload-archive 'a.git'", "git-receive-pack '../../etc'"])(
    'the command %j is answered with what is spoken here, status 128, and no shell',
    async (command) => {
      const ran = await ssh(door.port, key, ['git@127.0.0.1', command]);
      expect(ran).toMatchObject({ status: 128, stdout: '', stderr: expect.stringContaining('Only git is spoken here') });
    },
  );

  test('git archive --remote is answered with what to do instead', async () => {
    const { status, stderr } = await ssh(door.port, key, ['git@127.0.0.1', "git-upload-archive 'a.git'"]);
    expect(status).toBe(128);
    expect(stderr).toContain('use git clone --depth 1');
  });
});

describe('what is not there', () => {
  test.each([
    ['a subsystem', ['-s', 'git@127.0.0.1', 'sftp']],
    ['a forwarded port', ['-o', 'ExitOnForwardFailure=yes', '-N', '-R', '0:127.0.0.1:9', 'git@127.0.0.1']],
    ['a connection through us', ['-W', '127.0.0.1:9', 'git@127.0.0.1']],
  ])('%s is refused', async (_what, args) => {
    const ran = await ssh(door.port, key, args);
    expect(ran.status).not.toBe(0);
    expect(ran.stdout).toBe('');
  });

  test.each(['diffie-hellman-group14-sha1', 'diffie-hellman-group14-sha256'])(
    'the key exchange %s is not offered',
    async (name) => {
      const ran = await ssh(door.port, key, ['git@127.0.0.1'], ['-o', `KexAlgorithms=${name}`]);
      expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('no matching key exchange method found') });
    },
  );

  test.each([
    ['Ciphers', 'aes128-cbc', 'no matching cipher'],
    ['MACs', 'hmac-sha1', 'no matching MAC'],
    ['HostKeyAlgorithms', 'ssh-rsa', 'no matching host key type'],
  ])('%s=%s is not offered', async (option, name, words) => {
    const more = ['-o', `${option}=${name}`, ...(option === 'MACs' ? ['-o', 'Ciphers=aes128-ctr'] : [])];
    const ran = await ssh(door.port, key, ['git@127.0.0.1'], more);
    expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining(words) });
  });

  test.each(['ssh-ed25519', 'ecdsa-sha2-nistp256', 'rsa-sha2-512', 'rsa-sha2-256'])(
    'the host proves itself by %s',
    async (name) => {
      expect(await ssh(door.port, key, ['git@127.0.0.1'], ['-o', `HostKeyAlgorithms=${name}`])).toMatchObject({ status: 0 });
    },
  );

  test('key exchange is strict, which defeats prefix truncation (Terrapin)', async () => {
    expect((await ssh(door.port, key, ['git@127.0.0.1'], ['-vv'])).stderr).toContain('kex-strict-s-v00@openssh.com');
  });
});

test('one connection shared by several commands serves them all, and a key removed meanwhile opens nothing more', async () => {
  const passing = await makeKey(door.directory, 'passing', 'ed25519');
  door.addKey(passing.publicKey, ada);
  const control = path.join(door.directory, 'control');
  const shared = ['-o', `ControlPath=${control}`, '-o', 'ControlMaster=auto', '-o', 'ControlPersist=60'];
  try {
    const greeted = await Promise.all([1, 2, 3].map(() => ssh(door.port, passing, ['git@127.0.0.1'], shared)));
    for (const ran of greeted) expect(ran.status).toBe(0);
    door.removeKey(passing.publicKey);
    const refused = await ssh(door.port, passing, ['git@127.0.0.1'], shared);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('Your SSH key is no longer registered') });
  } finally {
    await ssh(door.port, passing, ['-O', 'exit', 'git@127.0.0.1'], shared);
  }
});
