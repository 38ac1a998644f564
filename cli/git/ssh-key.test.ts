import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { fingerprintsOf, parsePublicKey, readPublicKey } from '#cli/git/ssh-key.ts';

const run = promisify(execFile);
let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-key-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

it.each([
  ['ed25519', '256'],
  ['ecdsa', '521'],
  ['rsa', '2048'],
])('the fingerprint of an %s key is the one that ssh-keygen prints', async (type, bits) => {
  const path = join(directory, 'key');
  await run('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-C', 'Ada Lovelace <ada@example.com>', '-f', path]);
  const key = await readPublicKey(`${path}.pub`);
  const { stdout } = await run('ssh-keygen', ['-lf', path]);
  expect(stdout.split(' ')[1]).toBe(key.fingerprint);
  expect(key.comment).toBe('Ada Lovelace <ada@example.com>');
  expect(fingerprintsOf(`The agent says:\n${key.text}\n`)).toEqual([key.fingerprint]);
});

it('a private key is refused, and the error does not contain it', async () => {
  const path = join(directory, 'key');
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
  await expect(readPublicKey(path)).rejects.toThrow(/^\S+ is a private key, which must never leave your machine\.$/);
});

it.each(['', 'hello', 'ssh-ed25519', 'ssh-ed25519 not+base64!', 'ssh-rsa AAAA one\nssh-rsa AAAA two\n'])(
  '%j is not one public key',
  (text) => {
    expect(() => parsePublicKey(text, 'x.pub')).toThrow('x.pub is not a public key in OpenSSH format.');
  },
);
