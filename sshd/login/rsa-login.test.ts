import { createPrivateKey } from 'node:crypto';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RawSshClient, signWithSha1 } from '#test/support/ssh/raw-ssh-client.ts';
import { openTestSshServer, somebody, type TestSshServer } from '#test/support/ssh/test-ssh-server.ts';

let door: TestSshServer;
let key: ssh2.ParsedKey;
beforeAll(async () => {
  const parsed = ssh2.utils.parseKey(ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 }).private);
  if (parsed instanceof Error) throw parsed;
  key = parsed;
  door = await openTestSshServer();
  door.addKey(`${key.type} ${key.getPublicSSH().toString('base64')}`, somebody('ada@example.com'));
});
afterAll(async () => {
  await door.close();
});

test.each(['rsa-sha2-256', 'rsa-sha2-512'])(
  'a key offered for %s is answered by that name: Dropbear signs by what it reads there',
  async (algorithm) => {
    const client = await RawSshClient.connect(door.port);
    client.protocol.authPK('git', key, algorithm);
    const { args } = await client.next('USERAUTH_PK_OK');
    expect(args[0]).toBe(algorithm);
    client.end();
  },
);

test('a signature by SHA-1 is refused for a registered key', async () => {
  const client = await RawSshClient.connect(door.port);
  client.protocol.authPK('git', key, 'ssh-rsa', signWithSha1(createPrivateKey(key.getPrivatePEM())));
  expect((await client.next('USERAUTH_FAILURE', 'USERAUTH_SUCCESS')).message).toBe('USERAUTH_FAILURE');
  expect(door.lookups).toEqual([]);
  client.end();
});
