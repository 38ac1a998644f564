import { createPrivateKey } from 'node:crypto';
import ssh2 from 'ssh2';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { newKey, publicKeyOf } from '#sshd/testing/keys.ts';
import { RawSshClient, signWithSha1 } from '#sshd/testing/raw-ssh-client.ts';
import { newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';
import { makeKey, ssh } from '#test/support/ssh/ssh-client.ts';

const ada = newPrincipal('ada@example.com');
const eve = newPrincipal('eve@example.com');
const adasKey = newKey();
const evesKey = newKey();
let server: TestSshServer;

async function openServer(changes: Parameters<typeof openTestSshServer>[0] = {}): Promise<void> {
  server = await openTestSshServer(changes);
  server.addKey(publicKeyOf(adasKey), ada);
  server.addKey(publicKeyOf(evesKey), eve);
}

async function whoAmI(client: RawSshClient): Promise<string> {
  const channel = await client.openSession(0);
  client.protocol.shell(channel, true);
  const { stderr } = await client.waitForEnd();
  return /Hello (\S+),/.exec(stderr)?.[1] ?? stderr;
}

afterEach(async () => {
  await server.close();
});

describe('login', () => {
  beforeEach(() => openServer());

  test("a client that offers another person's key and signs with its own is logged in as itself", async () => {
    const client = await RawSshClient.connect(server.port);
    client.protocol.authPK('git', adasKey);
    await client.next('USERAUTH_PK_OK');
    client.signIn('git', evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test('a signature by a key other than the offered one is refused, and does not affect the login that follows', async () => {
    const client = await RawSshClient.connect(server.port);
    client.signIn('git', adasKey, evesKey);
    expect((await client.next('USERAUTH_FAILURE', 'USERAUTH_SUCCESS')).message).toBe('USERAUTH_FAILURE');
    client.signIn('git', evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test('requests sent without waiting for the answers do not mix up identities', async () => {
    const client = await RawSshClient.connect(server.port);
    client.signIn('git', evesKey);
    client.protocol.authPK('git', adasKey);
    client.signIn('git', adasKey, evesKey);
    await client.next('USERAUTH_SUCCESS');
    expect(await whoAmI(client)).toBe('eve@example.com');
    client.end();
  });

  test('neither a registered key without a signature nor the signature of an unregistered key opens a session', async () => {
    const client = await RawSshClient.connect(server.port);
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
  ])('%s is refused each time, and the connection is closed after the allowed attempts', async (_method, attempt) => {
    const client = await RawSshClient.connect(server.port);
    for (let i = 0; i < 6; i += 1) {
      attempt(client);
      await client.next('USERAUTH_FAILURE');
    }
    attempt(client);
    attempt(client);
    await client.closed;
    expect(client.received.map(({ message }) => message)).not.toContain('USERAUTH_SUCCESS');
  });

  test('a SHA-1 signature is refused, even by a registered key', async () => {
    const rsaKey = newKey(ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 }).private);
    server.addKey(publicKeyOf(rsaKey), ada);
    const client = await RawSshClient.connect(server.port);
    client.protocol.authPK('git', rsaKey, 'ssh-rsa', signWithSha1(createPrivateKey(rsaKey.getPrivatePEM())));
    expect((await client.next('USERAUTH_FAILURE', 'USERAUTH_SUCCESS')).message).toBe('USERAUTH_FAILURE');
    expect(server.lookups).toEqual([]);
    client.end();
  });

  test('keyboard-interactive asks no question and is always refused', async () => {
    const client = await RawSshClient.connect(server.port);
    client.protocol.authKeyboard('git');
    expect((await client.next('USERAUTH_INFO_REQUEST')).args[2]).toEqual([]);
    client.protocol.authInfoRes([]);
    expect((await client.next('USERAUTH_FAILURE')).args[0]).toEqual(['publickey']);
    client.end();
  });

  test('another user name is refused despite a registered key, and changing the user name closes the connection', async () => {
    const root = await RawSshClient.connect(server.port);
    root.signIn('root', adasKey);
    await root.next('USERAUTH_FAILURE');
    root.protocol.authNone('git');
    await root.closed;
    expect(root.received.map(({ message }) => message)).not.toContain('USERAUTH_SUCCESS');
  });

  test.each(['curve25519-sha256', 'mlkem768x25519-sha256'])('a client can log in after the key exchange %s', async (kex) => {
    const client = await RawSshClient.logIn(server.port, adasKey, { kex });
    expect(await whoAmI(client)).toBe('ada@example.com');
    client.end();
  });
});

test('when the database is down, logins are refused with an explanation that reveals no detail', async () => {
  await openServer({ resolveKey: () => Promise.reject(new Error('connection refused')) });
  const key = await makeKey(server.directory, 'key', 'ed25519');
  const ran = await ssh(server.port, key, ['git@127.0.0.1']);
  expect(ran).toMatchObject({
    status: 255,
    stderr: expect.stringContaining('Your SSH key could not be checked because of a problem on our side. Try again in a minute.'),
  });
  expect(ran.stderr).not.toContain('connection refused');
});
