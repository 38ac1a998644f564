import path from 'node:path';
import ssh2 from 'ssh2';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { RawSshClient } from '#test/support/ssh/raw-ssh-client.ts';
import { gitSshEnv, makeKey, makeWorkTree, run, ssh } from '#test/support/ssh/ssh-client.ts';
import { openTestSshServer, servedBy, somebody, type TestSshServer } from '#test/support/ssh/test-ssh-server.ts';

const ada = somebody('ada@example.com');
const eve = somebody('eve@example.com');
const adasPrivateKey = ssh2.utils.generateKeyPairSync('ed25519').private;
let adasKey: ssh2.ParsedKey;
let evesKey: ssh2.ParsedKey;
let door: TestSshServer;

function newKey(privateKey = ssh2.utils.generateKeyPairSync('ed25519').private): ssh2.ParsedKey {
  const key = ssh2.utils.parseKey(privateKey);
  if (key instanceof Error) throw key;
  return key;
}

function publicKeyOf(key: ssh2.ParsedKey): string {
  return `${key.type} ${key.getPublicSSH().toString('base64')}`;
}

async function openDoor(changes: Parameters<typeof openTestSshServer>[0] = {}): Promise<void> {
  door = await openTestSshServer(changes);
  door.addKey(publicKeyOf(adasKey), ada);
  door.addKey(publicKeyOf(evesKey), eve);
}

/** Ada's push with stock git, to see that the door still serves. */
async function pushAsAda(app: string): Promise<void> {
  const key = await makeKey(door.directory, `ada-${app}`, 'ed25519');
  door.addKey(key.publicKey, ada);
  await door.addApp(app, ada);
  const tree = path.join(door.directory, `tree-${app}`);
  await makeWorkTree(tree, { 'readme.txt': 'hello' });
  const pushed = await run('git', ['push', `ssh://git@127.0.0.1:${door.port}/${app}.git`, 'main'], {
    cwd: tree,
    env: gitSshEnv(door.port, key),
  });
  expect(pushed.status, pushed.stderr).toBe(0);
}

async function whoAmI(client: RawSshClient): Promise<string> {
  const channel = await client.openSession(0);
  client.protocol.shell(channel, true);
  const { stderr } = await client.ending();
  return /Hello (\S+),/.exec(stderr)?.[1] ?? stderr;
}

/** Waits until the count has stood still for a while. */
async function settled(count: () => number): Promise<void> {
  let before: number | undefined;
  await vi.waitFor(
    () => {
      const now = count();
      const moved = now !== before;
      before = now;
      expect(moved).toBe(false);
    },
    { interval: 400, timeout: 10_000 },
  );
}

beforeAll(() => {
  adasKey = newKey(adasPrivateKey);
  evesKey = newKey();
});
afterEach(async () => {
  await door.close();
});

describe('login', () => {
  beforeEach(() => openDoor());

  test("offering the victim's key and then signing with one's own makes one oneself", async () => {
    const client = await RawSshClient.connect(door.port);
    client.protocol.authPK('git', adasKey);
    await client.next('USERAUTH_PK_OK');
    client.signIn('git', evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test("a signature by another key for the victim's is refused, and leaves no trace in the login that follows", async () => {
    const client = await RawSshClient.connect(door.port);
    client.signIn('git', adasKey, evesKey);
    expect((await client.next('USERAUTH_FAILURE', 'USERAUTH_SUCCESS')).message).toBe('USERAUTH_FAILURE');
    client.signIn('git', evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test('requests sent at once, without waiting for answers, mix up nobody', async () => {
    const client = await RawSshClient.connect(door.port);
    client.signIn('git', evesKey);
    client.protocol.authPK('git', adasKey);
    client.signIn('git', adasKey, evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test('a known public key without a signature, and a stranger’s signature, open no session', async () => {
    const client = await RawSshClient.connect(door.port);
    client.protocol.authPK('git', adasKey);
    await client.next('USERAUTH_PK_OK');
    client.signIn('git', newKey());
    await client.next('USERAUTH_FAILURE');
    client.protocol.session(0, 2 ** 21, 2 ** 15);
    await expect(client.next('CHANNEL_OPEN_FAILURE')).resolves.toBeDefined();
    client.end();
  });

  test.each<[string, (client: RawSshClient) => void]>([
    ['none', (client) => client.protocol.authNone('git')],
    ['password', (client) => client.protocol.authPassword('git', '')],
    [
      'hostbased',
      (client) => client.protocol.authHostbased('git', adasKey, 'host', 'root', (data, done) => done(adasKey.sign(data))),
    ],
  ])('%s is refused each time, and after the allowed attempts the connection ends', async (_method, attempt) => {
    const client = await RawSshClient.connect(door.port);
    for (let i = 0; i < 6; i += 1) {
      attempt(client);
      await client.next('USERAUTH_FAILURE');
    }
    attempt(client);
    attempt(client);
    await client.closed;
    expect(client.heard.map(({ message }) => message)).not.toContain('USERAUTH_SUCCESS');
  });

  test('keyboard-interactive asks nothing and lets nobody in', async () => {
    const client = await RawSshClient.connect(door.port);
    client.protocol.authKeyboard('git');
    expect((await client.next('USERAUTH_INFO_REQUEST')).args[2]).toEqual([]);
    client.protocol.authInfoRes([]);
    expect((await client.next('USERAUTH_FAILURE')).args[0]).toEqual(['publickey']);
    client.end();
  });

  test('another user name is refused with a good key, and changing it midway ends the connection', async () => {
    const root = await RawSshClient.connect(door.port);
    root.signIn('root', adasKey);
    await root.next('USERAUTH_FAILURE');
    root.protocol.authNone('git');
    await root.closed;
    expect(root.heard.map(({ message }) => message)).not.toContain('USERAUTH_SUCCESS');
  });

  test.each(['curve25519-sha256', 'mlkem768x25519-sha256'])('the key exchange %s ends in a login', async (kex) => {
    const client = await RawSshClient.logIn(door.port, adasKey, { kex });
    expect(await whoAmI(client)).toBe('ada@example.com');
    client.end();
  });
});

describe('session', () => {
  beforeEach(() => openDoor());

  test.each([
    ['GIT_PROTOCOL', 'version=2', 'CHANNEL_SUCCESS'],
    ['GIT_PROTOCOL', '--upload-pack=touch /tmp/x', 'CHANNEL_FAILURE'],
    ['GIT_PROTOCOL', 'version=2\nLD_PRELOAD=x', 'CHANNEL_FAILURE'],
    ['LD_PRELOAD', '/tmp/x.so', 'CHANNEL_FAILURE'],
    ['--split-string', 'env', 'CHANNEL_FAILURE'],
    ['LANG', 'C', 'CHANNEL_FAILURE'],
  ] as const)('the environment variable %s=%j is answered with %s', async (name, value, answer) => {
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.env(channel, name, value, true);
    expect((await client.next('CHANNEL_SUCCESS', 'CHANNEL_FAILURE')).message).toBe(answer);
    client.end();
  });

  test('a second command on one session is refused', async () => {
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.exec(channel, "git-upload-pack 'nothing.git'", true);
    client.protocol.exec(channel, "git-upload-pack 'nothing.git'", true);
    client.protocol.shell(channel, false);
    await client.ending();
    const commands = door.logLines.filter((line) => line.includes('"ssh command"'));
    expect(commands).toHaveLength(1);
    client.end();
  });

  test('subsystems, agents, forwarded ports and connections through us are refused, and the session lives on', async () => {
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.subsystem(channel, 'sftp', true);
    await client.next('CHANNEL_FAILURE');
    client.protocol.openssh_agentForward(channel, true);
    await client.next('CHANNEL_FAILURE');
    client.protocol.tcpipForward('127.0.0.1', 0, true);
    await client.next('REQUEST_FAILURE');
    client.protocol.directTcpip(1, 2 ** 21, 2 ** 15, { srcIP: '127.0.0.1', srcPort: 1, dstIP: '127.0.0.1', dstPort: 22 });
    await client.next('CHANNEL_OPEN_FAILURE');
    client.protocol.shell(channel, true);
    expect((await client.ending()).status).toBe(0);
    client.end();
  });

  test('the eleventh session of one connection is refused, and a closed one makes room', async () => {
    const client = await RawSshClient.logIn(door.port, adasKey);
    let first = 0;
    for (let id = 0; id < 10; id += 1) {
      const channel = await client.openSession(id);
      if (id === 0) first = channel;
    }
    client.protocol.session(10, 2 ** 21, 2 ** 15);
    await expect(client.next('CHANNEL_OPEN_FAILURE')).resolves.toBeDefined();
    client.protocol.shell(first, true);
    await client.ending();
    (client.protocol as unknown as { channelClose(id: number): void }).channelClose(first);
    await client.openSession(11);
    client.end();
  });

  test.each([0, 1])('a client that takes %i bytes a packet is shown out before it costs anything', async (packetSize) => {
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0, 2 ** 21, packetSize);
    client.protocol.shell(channel, true);
    await expect(client.closed).resolves.toBeUndefined();
    await pushAsAda('after');
  });

  test('a fault of ours is told with a request id that is in the log, and nothing more', async () => {
    await door.close();
    const fail = (): Promise<number> => Promise.reject(new Error('secret detail at /srv/disk7'));
    await openDoor({ git: servedBy(fail) });
    await door.addApp('hello', ada);
    const client = await RawSshClient.logIn(door.port, adasKey);
    client.protocol.exec(await client.openSession(0), "git-upload-pack 'hello.git'", true);
    const { stderr, status } = await client.ending();
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Something went wrong on our side \(req_[0-9a-f]{32}\)\.[^\n]*\n$/);
    const id = /req_[0-9a-f]{32}/.exec(stderr)?.[0] ?? '';
    expect(door.logLines.filter((line) => line.includes(id) && line.includes('secret detail at /srv/disk7'))).toHaveLength(1);
    client.end();
  });
});

test('a database that is down is told to the person, and lets nobody in', async () => {
  await openDoor({ resolveKey: () => Promise.reject(new Error('connection refused')) });
  const key = await makeKey(door.directory, 'key', 'ed25519');
  const ran = await ssh(door.port, key, ['git@127.0.0.1']);
  expect(ran).toMatchObject({ status: 255, stderr: expect.stringContaining('through no fault of yours') });
  expect(ran.stderr).not.toContain('connection refused');
});

describe('flow', () => {
  const mebibyte = 1024 * 1024;

  test('a client is stopped by the window while nobody reads what it sends, and gets all of it through afterwards', async () => {
    const gate = Promise.withResolvers<void>();
    let received = 0;
    const read = async (_repository: unknown, stream: { input: AsyncIterable<Uint8Array> }): Promise<number> => {
      await gate.promise;
      for await (const chunk of stream.input) received += chunk.length;
      return 0;
    };
    await openDoor({ git: servedBy(read) });
    await door.addApp('hello', ada);
    const client = new ssh2.Client().connect({ port: door.port, host: '127.0.0.1', username: 'git', privateKey: adasPrivateKey });
    await new Promise((resolve, reject) => void client.on('ready', () => resolve(undefined)).on('error', reject));
    const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec("git-receive-pack 'hello.git'", (error, opened) => (error === undefined ? resolve(opened) : reject(error)));
    });
    let taken = 0;
    const pump = async (): Promise<void> => {
      for (let i = 0; i < 64; i += 1) {
        await new Promise<void>((resolve) => void channel.write(Buffer.alloc(mebibyte), () => resolve()));
        taken += 1;
      }
      channel.end();
    };
    const pumping = pump();
    await vi.waitFor(() => expect(taken).toBeGreaterThan(0));
    await settled(() => taken);
    expect(taken).toBeLessThanOrEqual(6);
    gate.resolve();
    await pumping;
    await vi.waitFor(() => expect(received).toBe(64 * mebibyte), { timeout: 10_000 });
    client.end();
  });

  test.each<[string, (client: RawSshClient) => void]>([
    ['does not read its socket', (client) => client.socket.pause()],
    ['has begun a key exchange and does not go on with it', (client) => client.beginKeyExchangeOnly()],
  ])('a writer is stopped while the client %s, though it granted a window of 4 GiB', async (_what, stall) => {
    let written = 0;
    const gate = Promise.withResolvers<void>();
    const write = async (
      _repository: unknown,
      stream: { write(chunk: Uint8Array): Promise<void>; clientGone: AbortSignal },
    ): Promise<number> => {
      await gate.promise;
      for (; !stream.clientGone.aborted && written < 256; written += 1) await stream.write(Buffer.alloc(mebibyte));
      return 0;
    };
    await openDoor({ git: servedBy(write) });
    await door.addApp('hello', ada);
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0, 2 ** 32 - 1);
    client.protocol.exec(channel, "git-upload-pack 'hello.git'", true);
    await client.next('CHANNEL_SUCCESS');
    const bytesRead = client.socket.bytesRead;
    stall(client);
    // The stall must have reached the server: its own half of a key exchange, or a moment for the paused one.
    if (!client.socket.isPaused()) await vi.waitFor(() => expect(client.socket.bytesRead).toBeGreaterThan(bytesRead));
    gate.resolve();
    await settled(() => written);
    expect(written).toBeLessThan(32);
    client.end();
    await vi.waitFor(() => expect(door.logLines.some((line) => line.includes('"client_gone":true'))).toBe(true), {
      timeout: 10_000,
    });
  });

  test('what waited for the window is sent once, on stdout and then on stderr', async () => {
    const fail = async (_repository: unknown, stream: { write(chunk: Uint8Array): Promise<void> }): Promise<number> => {
      await stream.write(Buffer.alloc(150, 'x'));
      throw new Error('and now the words');
    };
    await openDoor({ git: servedBy(fail) });
    await door.addApp('hello', ada);
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0, 100);
    client.protocol.exec(channel, "git-upload-pack 'hello.git'", false);
    const first = await client.next('CHANNEL_DATA');
    // Exactly what is left, so that the words find the window shut.
    client.protocol.channelWindowAdjust(channel, 50);
    const second = await client.next('CHANNEL_DATA');
    client.protocol.channelWindowAdjust(channel, 10_000);
    const { stderr, status } = await client.ending();
    expect([first, second].map(({ args }) => String(args[1]).length)).toEqual([100, 50]);
    expect(client.heard.filter(({ message }) => message === 'CHANNEL_DATA')).toEqual([]);
    expect(stderr).toMatch(/^Something went wrong on our side/);
    expect(status).toBe(1);
    client.end();
  });

  test('a client that ignores the window is cut off, and the door serves on', async () => {
    const wait = (_repository: unknown, stream: { clientGone: AbortSignal }): Promise<number> =>
      new Promise((resolve) => stream.clientGone.addEventListener('abort', () => resolve(1)));
    await openDoor({ git: servedBy(wait) });
    await door.addApp('hello', ada);
    const client = await RawSshClient.logIn(door.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.exec(channel, "git-receive-pack 'hello.git'", true);
    await client.next('CHANNEL_SUCCESS');
    // Not a multiple of the window, so that it is overshot and not met.
    for (let i = 0; i < 1000; i += 1) client.protocol.channelData(channel, Buffer.alloc(30_001));
    await client.closed;
    expect(door.logLines.some((line) => line.includes('more data than the window allows'))).toBe(true);
  });

  test('a client that starts a key exchange and then sends something else is cut off', async () => {
    await openDoor();
    const client = await RawSshClient.logIn(door.port, adasKey);
    client.beginKeyExchangeOnly();
    client.protocol.ping();
    await expect(client.closed).resolves.toBeUndefined();
  });

  test('much data before a login is cut off', async () => {
    await openDoor();
    const client = await RawSshClient.connect(door.port);
    // Offers of keys cost no attempt, because they are not looked up.
    const noise = setInterval(() => {
      for (let i = 0; i < 200 && client.socket.writable; i += 1) client.protocol.authPK('git', adasKey);
    }, 1);
    await client.closed;
    clearInterval(noise);
    expect(door.logLines.some((line) => line.includes('much data before login'))).toBe(true);
  });
});
