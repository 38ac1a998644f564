import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type SignedLogin, verifyLoginSignature } from './login-signature.ts';

const data = Buffer.from('session id and request');

function string(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function field(key: KeyObject, name: 'x' | 'y' | 'n' | 'e'): Buffer {
  return Buffer.from(key.export({ format: 'jwk' })[name] ?? '', 'base64url');
}

function mpint(bytes: Buffer): Buffer {
  return string((bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes);
}

function point(key: KeyObject): Buffer {
  return Buffer.concat([Buffer.of(4), field(key, 'x'), field(key, 'y')]);
}

function ed25519(): SignedLogin {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return {
    keyType: 'ssh-ed25519',
    key: Buffer.concat([string('ssh-ed25519'), string(field(publicKey, 'x'))]),
    signature: sign(null, data, privateKey),
    data,
    rsaHash: undefined,
  };
}

function ecdsa(curve: 'nistp256' | 'nistp384' | 'nistp521', hash: string): SignedLogin {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: curve.replace('nistp', 'P-') });
  const keyType = `ecdsa-sha2-${curve}`;
  return {
    keyType,
    key: Buffer.concat([string(keyType), string(curve), string(point(publicKey))]),
    signature: sign(hash, data, privateKey),
    data,
    rsaHash: undefined,
  };
}

function rsa(bits: number, hash: string, exponent = 65537): SignedLogin {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits, publicExponent: exponent });
  return {
    keyType: 'ssh-rsa',
    key: Buffer.concat([string('ssh-rsa'), mpint(field(publicKey, 'e')), mpint(field(publicKey, 'n'))]),
    signature: sign(hash, data, privateKey),
    data,
    rsaHash: hash,
  };
}

/** Signs as a security key does (OpenSSH, PROTOCOL.u2f). */
function securityKey(kind: 'ed25519' | 'ecdsa', flags = 1): SignedLogin {
  const application = 'ssh:';
  const trailer = Buffer.of(flags, 0, 0, 0, 7);
  const sha256 = (bytes: string | Buffer): Buffer => createHash('sha256').update(bytes).digest();
  const signed = Buffer.concat([sha256(application), trailer, sha256(data)]);
  if (kind === 'ed25519') {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const keyType = 'sk-ssh-ed25519@openssh.com';
    const key = Buffer.concat([string(keyType), string(field(publicKey, 'x')), string(application)]);
    return { keyType, key, signature: Buffer.concat([sign(null, signed, privateKey), trailer]), data, rsaHash: undefined };
  }
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyType = 'sk-ecdsa-sha2-nistp256@openssh.com';
  const key = Buffer.concat([string(keyType), string('nistp256'), string(point(publicKey)), string(application)]);
  const halves = sign('sha256', signed, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const trimmed = [halves.subarray(0, 32), halves.subarray(32)].map((half) =>
    half.subarray(half.findIndex((byte) => byte !== 0)),
  );
  return { keyType, key, signature: Buffer.concat([...trimmed.map((half) => mpint(half)), trailer]), data, rsaHash: undefined };
}

const logins: readonly (readonly [string, SignedLogin])[] = [
  ['ssh-ed25519', ed25519()],
  ['ecdsa-sha2-nistp256', ecdsa('nistp256', 'sha256')],
  ['ecdsa-sha2-nistp384', ecdsa('nistp384', 'sha384')],
  ['ecdsa-sha2-nistp521', ecdsa('nistp521', 'sha512')],
  ['rsa-sha2-256', rsa(2048, 'sha256')],
  ['rsa-sha2-512', rsa(3072, 'sha512')],
  ['sk-ssh-ed25519', securityKey('ed25519')],
  ['sk-ecdsa-sha2-nistp256', securityKey('ecdsa')],
];

describe.each(logins)('%s', (_name, login) => {
  test('a valid signature is accepted', () => {
    expect(verifyLoginSignature(login)).toBe(true);
  });

  test('a signature, data or a key with one flipped bit is refused', () => {
    const flipped = (bytes: Uint8Array, at: number): Buffer => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ 1;
      return copy;
    };
    for (let at = 0; at < login.signature.length; at += 1) {
      expect(verifyLoginSignature({ ...login, signature: flipped(login.signature, at) }), `signature byte ${at}`).toBe(false);
    }
    for (let at = 0; at < login.key.length; at += 1) {
      expect(verifyLoginSignature({ ...login, key: flipped(login.key, at) }), `key byte ${at}`).toBe(false);
    }
    expect(verifyLoginSignature({ ...login, data: flipped(login.data, 3) })).toBe(false);
  });

  test('a truncated key, a key with extra bytes, and a key announced as another type are refused', () => {
    expect(verifyLoginSignature({ ...login, key: Buffer.concat([login.key, Buffer.of(0)]) })).toBe(false);
    expect(verifyLoginSignature({ ...login, key: Buffer.concat([login.key, string('')]) })).toBe(false);
    for (let length = 0; length < login.key.length; length += 1) {
      expect(verifyLoginSignature({ ...login, key: login.key.subarray(0, length) })).toBe(false);
    }
    for (const [, other] of logins) {
      if (other.keyType !== login.keyType) expect(verifyLoginSignature({ ...login, keyType: other.keyType })).toBe(false);
    }
    expect(verifyLoginSignature({ ...login, signature: Buffer.alloc(0) })).toBe(false);
  });
});

test('the signature of a security key that nobody touched is refused', () => {
  expect(verifyLoginSignature(securityKey('ed25519', 0))).toBe(false);
  expect(verifyLoginSignature(securityKey('ecdsa', 4))).toBe(false);
});

test('RSA with SHA-1, a short modulus or a huge exponent is refused', () => {
  expect(verifyLoginSignature({ ...rsa(2048, 'sha1'), rsaHash: undefined })).toBe(false);
  expect(verifyLoginSignature(rsa(2048, 'sha1'))).toBe(false);
  expect(verifyLoginSignature(rsa(1024, 'sha256'))).toBe(false);
  const good = rsa(2048, 'sha256');
  const modulus = good.key.subarray(4 + 7 + 4 + 3);
  expect(
    verifyLoginSignature({ ...good, key: Buffer.concat([string('ssh-rsa'), mpint(Buffer.alloc(256, 0x7f)), modulus]) }),
  ).toBe(false);
});

test('the key type ssh-dss is refused', () => {
  expect(verifyLoginSignature({ ...ed25519(), keyType: 'ssh-dss' })).toBe(false);
});
