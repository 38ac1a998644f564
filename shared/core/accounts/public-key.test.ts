import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parsePublicKey } from '#shared/core/accounts/public-key.ts';
import { sshFingerprint } from '#shared/ssh-public-key.ts';

const directory = mkdtempSync(join(tmpdir(), 'paas-keys-'));
afterAll(() => rmSync(directory, { recursive: true }));

function makeKey(type: string, bits: string): string {
  const path = join(mkdtempSync(join(directory, 'key-')), 'key');
  execFileSync('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-C', 'a comment', '-f', path]);
  return path;
}

describe('parsePublicKey', () => {
  it.each([
    ['ed25519', '256'],
    ['ecdsa', '256'],
    ['ecdsa', '384'],
    ['ecdsa', '521'],
    ['rsa', '2048'],
    ['rsa', '3072'],
  ])('takes %s-%s, with the fingerprint that ssh-keygen prints', async (type, bits) => {
    const path = makeKey(type, bits);
    const printed = execFileSync('ssh-keygen', ['-lf', `${path}.pub`], { encoding: 'utf8' }).split(' ')[1];
    const key = parsePublicKey(readFileSync(`${path}.pub`, 'utf8'));
    expect(await sshFingerprint(key.blob)).toBe(printed);
    expect(key.comment).toBe('a comment');
  });

  it('refuses an RSA key of 1024 bits', () => {
    const path = makeKey('rsa', '1024');
    expect(() => parsePublicKey(readFileSync(`${path}.pub`, 'utf8'))).toThrow('at least 2048');
  });

  it('refuses an RSA key that the SSH daemon would not verify by', () => {
    const string = (bytes: Buffer): Buffer => Buffer.concat([Buffer.from([0, 0, bytes.length >> 8, bytes.length & 255]), bytes]);
    const blobOf = (exponent: Buffer, modulusBytes: number): string =>
      Buffer.concat([string(Buffer.from('ssh-rsa')), string(exponent), string(Buffer.alloc(modulusBytes, 0x7f))]).toString(
        'base64',
      );
    expect(() => parsePublicKey(`ssh-rsa ${blobOf(Buffer.of(1, 0, 1), 2048)}`)).toThrow('at most 8192');
    expect(() => parsePublicKey(`ssh-rsa ${blobOf(Buffer.alloc(256, 0x7f), 384)}`)).toThrow('damaged');
    expect(parsePublicKey(`ssh-rsa ${blobOf(Buffer.of(1, 0, 1), 384)}`).type).toBe('ssh-rsa');
  });

  it('tells somebody who pastes a private key to keep it', () => {
    const path = makeKey('ed25519', '256');
    expect(() => parsePublicKey(readFileSync(path, 'utf8'))).toThrow('That is a private key');
  });

  const good = (): string => readFileSync(`${makeKey('ed25519', '256')}.pub`, 'utf8').trim();
  it.each([
    ['nothing', () => ''],
    ['words', () => 'hello there'],
    ['a type alone', () => 'ssh-ed25519'],
    ['a cut key', () => good().split(' ').slice(0, 2).join(' ').slice(0, -8)],
    [
      'a key with bytes behind it',
      () =>
        `ssh-ed25519 ${Buffer.concat([Buffer.from(good().split(' ')[1] ?? '', 'base64'), Buffer.from('more')]).toString('base64')}`,
    ],
    ['another type than its content', () => good().replace('ssh-ed25519', 'ssh-rsa')],
    ['two keys', () => `${good()}\n${good()}`],
    ['options before the key', () => `command="sh" ${good()}`],
    ['a DSA key', () => 'ssh-dss AAAAB3NzaC1kc3MAAACB'],
    ['a certificate', () => 'ssh-ed25519-cert-v01@openssh.com AAAAIHNzaC1lZDI1NTE5LWNlcnQtdjAxQG9wZW5zc2guY29t'],
  ])('refuses %s with validation_failed', (_name, text) => {
    expect(() => parsePublicKey(text())).toThrow(expect.objectContaining({ code: 'validation_failed' }));
  });
});
