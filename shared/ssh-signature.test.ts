import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { verifySshSignature } from '#shared/ssh-signature.ts';
import { runChecked } from '#test/support/run-program.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-sshsig-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const message = 'text that is signed';

async function signWith(type: string, bits: string, ...options: string[]): Promise<{ key: Uint8Array; signature: string }> {
  const path = join(directory, crypto.randomUUID());
  await runChecked('ssh-keygen', ['-q', '-t', type, '-b', bits, '-N', '', '-f', path]);
  await writeFile(`${path}.txt`, message);
  await runChecked('ssh-keygen', ['-Y', 'sign', '-q', '-n', 'paas', ...options, '-f', path, `${path}.txt`]);
  const key = Uint8Array.fromBase64((await readFile(`${path}.pub`, 'utf8')).split(' ')[1] ?? '');
  return { key, signature: await readFile(`${path}.txt.sig`, 'utf8') };
}

describe('a signature of ssh-keygen', () => {
  it.each([
    ['ed25519', '256'],
    ['ecdsa', '256'],
    ['ecdsa', '384'],
    ['ecdsa', '521'],
    ['rsa', '2048'],
  ])('is accepted for its key, namespace and message alone: %s %s', async (type, bits) => {
    const { key, signature } = await signWith(type, bits);
    const expected = { key, namespace: 'paas', message };
    expect(await verifySshSignature(signature, expected)).toBe(true);
    expect(await verifySshSignature(signature, { ...expected, message: `${message}.` })).toBe(false);
    expect(await verifySshSignature(signature, { ...expected, namespace: 'git' })).toBe(false);
    expect(await verifySshSignature(signature, { ...expected, key: (await signWith(type, bits)).key })).toBe(false);
  });

  it('with the other hash is accepted', async () => {
    const { key, signature } = await signWith('ed25519', '256', '-O', 'hashalg=sha256');
    expect(await verifySshSignature(signature, { key, namespace: 'paas', message })).toBe(true);
  });

  it('that is cut off, changed or something else is refused', async () => {
    const { key, signature } = await signWith('ed25519', '256');
    const bytes = Uint8Array.fromBase64(signature.replaceAll(/-----.*-----|\s/g, ''));
    const armored = (blob: Uint8Array): string =>
      `-----BEGIN SSH SIGNATURE-----\n${blob.toBase64()}\n-----END SSH SIGNATURE-----\n`;
    expect(await verifySshSignature(armored(bytes), { key, namespace: 'paas', message })).toBe(true);
    for (let length = 0; length < bytes.length; length += 7)
      expect(await verifySshSignature(armored(bytes.subarray(0, length)), { key, namespace: 'paas', message })).toBe(false);
    for (let at = 0; at < bytes.length; at += 3) {
      const changed = bytes.with(at, (bytes[at] ?? 0) ^ 1);
      expect(await verifySshSignature(armored(changed), { key, namespace: 'paas', message }), `byte ${at}`).toBe(false);
    }
    for (const text of ['', 'signature', '-----BEGIN SSH SIGNATURE-----\n-----END SSH SIGNATURE-----'])
      expect(await verifySshSignature(text, { key, namespace: 'paas', message })).toBe(false);
  });
});

describe('a signature of a security key', () => {
  const string = (data: Uint8Array | string): Buffer => {
    const bytes = Buffer.from(data);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const sha256 = (data: Uint8Array | string): Buffer => createHash('sha256').update(data).digest();

  function signTouched(flags: number): { key: Uint8Array; signature: string } {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const type = 'sk-ssh-ed25519@openssh.com';
    const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
    const key = Buffer.concat([string(type), string(point), string('ssh:')]);
    const digest = createHash('sha512').update(message).digest();
    const signed = Buffer.concat([Buffer.from('SSHSIG'), string('paas'), string(''), string('sha512'), string(digest)]);
    const trailer = Buffer.of(flags, 0, 0, 0, 7);
    const inner = sign(null, Buffer.concat([sha256('ssh:'), trailer, sha256(signed)]), privateKey);
    const signature = Buffer.concat([string(type), string(inner), trailer]);
    const head = Buffer.concat([Buffer.from('SSHSIG'), Buffer.of(0, 0, 0, 1)]);
    const blob = Buffer.concat([head, string(key), string('paas'), string(''), string('sha512'), string(signature)]);
    return { key, signature: `-----BEGIN SSH SIGNATURE-----\n${blob.toString('base64')}\n-----END SSH SIGNATURE-----\n` };
  }

  it('is accepted if somebody touched the key', async () => {
    const { key, signature } = signTouched(1);
    expect(await verifySshSignature(signature, { key, namespace: 'paas', message })).toBe(true);
  });

  it('is refused if nobody touched it', async () => {
    const { key, signature } = signTouched(0);
    expect(await verifySshSignature(signature, { key, namespace: 'paas', message })).toBe(false);
  });
});
