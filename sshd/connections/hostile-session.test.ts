import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newKey, publicKeyOf } from '#sshd/testing/keys.ts';
import { RawSshClient } from '#sshd/testing/raw-ssh-client.ts';
import { createGitServer, newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';
import { gitSshEnv, makeKey, makeWorkTree, run } from '#test/support/ssh/ssh-client.ts';

const ada = newPrincipal('ada@example.com');

const adasKey = newKey();

let server: TestSshServer;

async function openServer(changes: Parameters<typeof openTestSshServer>[0] = {}): Promise<void> {
  server = await openTestSshServer(changes);
  server.addKey(publicKeyOf(adasKey), ada);
}

/** Ada's push with stock git, to check that the server still works. */
async function pushAsAda(app: string): Promise<void> {
  const key = await makeKey(server.directory, `ada-${app}`, 'ed25519');
  server.addKey(key.publicKey, ada);
  await server.addApp(app, ada);
  const tree = path.join(server.directory, `tree-${app}`);
  await makeWorkTree(tree, { 'readme.txt': 'hello' });
  const pushed = await run('git', ['push', `ssh://git@127.0.0.1:${server.port}/${app}.git`, 'main'], {
    cwd: tree,
    env: gitSshEnv(server.port, key),
  });
  expect(pushed.status, pushed.stderr).toBe(0);
}

afterEach(async () => {
  await server.close();
});

describe('session', () => {
  beforeEach(() => openServer());

  test.each([
    ['GIT_PROTOCOL', 'version=2', 'CHANNEL_SUCCESS'],
    ['GIT_PROTOCOL', '--upload-pack=touch /tmp/x', 'CHANNEL_FAILURE'],
    ['GIT_PROTOCOL', 'version=2\nLD_PRELOAD=x', 'CHANNEL_FAILURE'],
    ['LD_PRELOAD', '/tmp/x.so', 'CHANNEL_FAILURE'],
    ['--split-string', 'env', 'CHANNEL_FAILURE'],
    ['LANG', 'C', 'CHANNEL_FAILURE'],
  ] as const)('the environment variable %s=%j is answered with %s', async (name, value, answer) => {
    const client = await RawSshClient.logIn(server.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.env(channel, name, value, true);
    expect((await client.next('CHANNEL_SUCCESS', 'CHANNEL_FAILURE')).message).toBe(answer);
    client.end();
  });

  test('a second command in one session is refused', async () => {
    const client = await RawSshClient.logIn(server.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.exec(channel, "git-upload-pack 'nothing.git'", true);
    client.protocol.exec(channel, "git-upload-pack 'nothing.git'", true);
    client.protocol.shell(channel, false);
    await client.waitForEnd();
    const commands = server.logLines.filter((line) => line.includes('"ssh command"'));
    expect(commands).toHaveLength(1);
    client.end();
  });

  test('subsystems, agent forwarding, port forwarding and tunnels are refused, and the session goes on', async () => {
    const client = await RawSshClient.logIn(server.port, adasKey);
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
    expect((await client.waitForEnd()).status).toBe(0);
    client.end();
  });

  test('the eleventh session of a connection is refused until another one is closed', async () => {
    const client = await RawSshClient.logIn(server.port, adasKey);
    let first = 0;
    for (let id = 0; id < 10; id += 1) {
      const channel = await client.openSession(id);
      if (id === 0) first = channel;
    }
    client.protocol.session(10, 2 ** 21, 2 ** 15);
    await expect(client.next('CHANNEL_OPEN_FAILURE')).resolves.toBeDefined();
    client.protocol.shell(first, true);
    await client.waitForEnd();
    (client.protocol as unknown as { channelClose(id: number): void }).channelClose(first);
    await client.openSession(11);
    client.end();
  });

  test.each([0, 1])(
    'a client that accepts %i bytes per packet is disconnected, and the server still works',
    async (packetSize) => {
      const client = await RawSshClient.logIn(server.port, adasKey);
      const channel = await client.openSession(0, 2 ** 21, packetSize);
      client.protocol.shell(channel, true);
      await expect(client.closed).resolves.toBeUndefined();
      await pushAsAda('after');
    },
  );

  test('the client gets only the request id of an unexpected error; the error itself is in the log with that id', async () => {
    await server.close();
    const fail = (): Promise<number> => Promise.reject(new Error('secret detail at /srv/disk7'));
    await openServer({ git: createGitServer(fail) });
    await server.addApp('hello', ada);
    const client = await RawSshClient.logIn(server.port, adasKey);
    client.protocol.exec(await client.openSession(0), "git-upload-pack 'hello.git'", true);
    const { stderr, status } = await client.waitForEnd();
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Something went wrong on our side \(req_[0-9a-f]{32}\)\.[^\n]*\n$/);
    const id = /req_[0-9a-f]{32}/.exec(stderr)?.[0] ?? '';
    expect(server.logLines.filter((line) => line.includes(id) && line.includes('secret detail at /srv/disk7'))).toHaveLength(1);
    client.end();
  });
});
