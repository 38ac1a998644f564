/**
 * The patch of ssh2, hunk by hunk: each test fails without its hunk. docs/private-internals.md lists the hunks and says what
 * to do when one fails after an upgrade.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import ssh2 from 'ssh2';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKey, publicKeyOf } from '#sshd/testing/keys.ts';
import { RawSshClient } from '#sshd/testing/raw-ssh-client.ts';
import { createGitServer, newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';
import { ssh } from '#test/support/ssh/ssh-client.ts';
import { algorithms } from './algorithms.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const { version } = createRequire(import.meta.url)('ssh2/package.json') as { version: string };
const missing = (hunk: string): string =>
  `ssh2 ${version} lacks the hunk ${hunk} of patches/: carry it over to this version (docs/private-internals.md)`;

/** The result of `wait`, or after five seconds an error that names the hunk. */
function orMissing<Result>(hunk: string, wait: Promise<Result>): Promise<Result> {
  const tooLate = setTimeout(5000, undefined, { ref: false }).then((): never => {
    throw new Error(missing(hunk));
  });
  return Promise.race([wait, tooLate]);
}

const person = newPrincipal('ada@example.com');
const rsaKey = newKey(ssh2.utils.generateKeyPairSync('rsa', { bits: 2048 }).private);
const key = newKey();
let server: TestSshServer;
beforeAll(async () => {
  server = await openTestSshServer({
    git: createGitServer(async (_repository, stream) => {
      await stream.write(Buffer.alloc(150, 'x'));
      throw new Error('after the output');
    }),
  });
  server.addKey(publicKeyOf(key), person);
  await server.addApp('hello', person);
});
afterAll(() => server.close());

describe('the patch of ssh2', () => {
  test('is for the installed version, and docs/private-internals.md lists each of its hunks', () => {
    expect(readdirSync(`${root}/patches`)).toEqual([`ssh2@${version}.patch`]);
    const listed = readFileSync(`${root}/docs/private-internals.md`, 'utf8');
    let file = '';
    const hunks = readFileSync(`${root}/patches/ssh2@${version}.patch`, 'utf8')
      .split('\n')
      .flatMap((line) => {
        file = /^\+\+\+ b\/(.*)/.exec(line)?.[1] ?? file;
        const start = /^@@ -(\d+)/.exec(line)?.[1];
        return start === undefined ? [] : [`${file}:${start}`];
      });
    expect(hunks.length).toBeGreaterThan(0);
    expect(hunks.filter((hunk) => !listed.includes(`\`${hunk}\``))).toEqual([]);
  });

  test('keeps leading zero bytes of a generated Ed25519 public key', () => {
    let point: Buffer;
    // One key in 256 begins with a zero byte.
    do {
      point = newKey().getPublicSSH().subarray(19);
      expect(point.length, missing('lib/keygen.js:287')).toBe(32);
    } while (point[0] !== 0);
  });

  test('announces exactly the signature algorithms that are accepted, as a valid list', async () => {
    const client = await RawSshClient.connect(server.port);
    const { args } = await orMissing('lib/protocol/Protocol.js:2110', client.next('EXT_INFO'));
    expect(args[0], missing('lib/protocol/Protocol.js:2110')).toEqual([
      {
        name: 'server-sig-algs',
        algs: [
          'ssh-ed25519',
          'ecdsa-sha2-nistp256',
          'ecdsa-sha2-nistp384',
          'ecdsa-sha2-nistp521',
          'sk-ssh-ed25519@openssh.com',
          'sk-ecdsa-sha2-nistp256@openssh.com',
          'rsa-sha2-512',
          'rsa-sha2-256',
        ],
      },
    ]);
    client.end();
  });

  test('adds the key exchange mlkem768x25519-sha256', async () => {
    const hunks = 'lib/protocol/constants.js:53 or lib/protocol/kex.js:6, :54, :1314, :1592';
    expect(algorithms.kex).toContain('mlkem768x25519-sha256');
    expect(() => new ssh2.Server({ hostKeys: [{ key }], algorithms }), missing(hunks)).not.toThrow();
    const exchanged = RawSshClient.connect(server.port, { kex: 'mlkem768x25519-sha256' });
    const client = await exchanged.catch((error: unknown) => error);
    expect(client, missing(hunks)).toBeInstanceOf(RawSshClient);
    (client as RawSshClient).end();
  });

  test.each(['rsa-sha2-256', 'rsa-sha2-512'])('accepts an offered key under the name of the request: %s', async (algorithm) => {
    const client = await RawSshClient.connect(server.port);
    client.protocol.authPK('git', rsaKey, algorithm);
    const { args } = await orMissing('lib/server.js:144', client.next('USERAUTH_PK_OK'));
    expect(args[0], missing('lib/server.js:144')).toBe(algorithm);
    client.end();
  });

  test('does not offer an RSA host key with SHA-1', async () => {
    const ran = await ssh(server.port, undefined, ['git@127.0.0.1'], ['-o', 'HostKeyAlgorithms=ssh-rsa']);
    expect(ran.stderr, missing('lib/server.js:267')).toContain('no matching host key type');
  });

  test('sends data that waited for the window once, first stdout and then stderr', async () => {
    const client = await RawSshClient.logIn(server.port, key);
    const channel = await client.openSession(0, 100);
    client.protocol.exec(channel, "git-upload-pack 'hello.git'", false);
    const first = await client.next('CHANNEL_DATA');
    // Exactly the rest of the output, so that the error message finds the window closed.
    client.protocol.channelWindowAdjust(channel, 50);
    const second = await orMissing('lib/server.js:781', client.next('CHANNEL_DATA'));
    client.protocol.channelWindowAdjust(channel, 10_000);
    const third = await orMissing('lib/server.js:781', client.next('CHANNEL_DATA', 'CHANNEL_EXTENDED_DATA'));
    expect([first, second].map(({ args }) => String(args[1]).length)).toEqual([100, 50]);
    expect(third.message, missing('lib/server.js:781')).toBe('CHANNEL_EXTENDED_DATA');
    expect(String(third.args[1])).toMatch(/^Something went wrong on our side/);
    expect((await client.waitForEnd()).status).toBe(1);
    const more = client.received.filter(({ message }) => message === 'CHANNEL_DATA' || message === 'CHANNEL_EXTENDED_DATA');
    expect(more, missing('lib/server.js:781')).toEqual([]);
    client.end();
  });
});
