import { createHash, createPublicKey, type KeyObject, verify, type webcrypto } from 'node:crypto';
import { isSshKeyType, parseSshPublicKey, readSshStrings, rsaBits } from '#shared/ssh-public-key.ts';

/** The signature of a public-key login as ssh2 presents it. */
export interface SignedLogin {
  /** Key type of RFC 4253 §6.6, `ssh-rsa` for all RSA signatures. */
  readonly keyType: string;
  /** The raw public key. */
  readonly key: Uint8Array;
  /** ECDSA: in DER. Security keys: the inner signature, flags and counter (OpenSSH, PROTOCOL.u2f). */
  readonly signature: Uint8Array;
  /** The signed data: session id and request (RFC 4252 §7). */
  readonly data: Uint8Array;
  /** RSA only: `sha256` or `sha512`. Undefined means SHA-1, which is refused. */
  readonly rsaHash: string | undefined;
}

const curves = {
  nistp256: { jwk: 'P-256', hash: 'sha256' },
  nistp384: { jwk: 'P-384', hash: 'sha384' },
  nistp521: { jwk: 'P-521', hash: 'sha512' },
};

/** The flag that a security key sets when somebody touched it. */
const userPresent = 0x01;

/** True only when the signature verifies, is by exactly this key, and uses an algorithm without known weaknesses. Never throws. */
export function verifyLoginSignature(login: SignedLogin): boolean {
  try {
    const key = parsePublicKey(login.key, login.keyType);
    if (key === undefined) return false;
    if (key.application !== undefined) return verifySecurityKey(key.publicKey, key.application, key.hash, login);
    const hash = login.keyType === 'ssh-rsa' ? rsaHash(login.rsaHash) : key.hash;
    return hash !== undefined && verify(hash, login.data, key.publicKey, login.signature) === true;
  } catch {
    // node:crypto throws for a point that is not on the curve and for malformed DER.
    return false;
  }
}

function rsaHash(name: string | undefined): string | undefined {
  return name === 'sha256' || name === 'sha512' ? name : undefined;
}

/** PROTOCOL.u2f: the token signs SHA-256(application), flags, counter, SHA-256(message). */
function verifySecurityKey(publicKey: KeyObject, application: Uint8Array, hash: string | null, login: SignedLogin): boolean {
  const trailer = login.signature.subarray(-5);
  const inner = login.signature.subarray(0, -5);
  const flags = trailer[0];
  if (trailer.length !== 5 || flags === undefined || (flags & userPresent) === 0) return false;
  const data = Buffer.concat([sha256(application), trailer, sha256(login.data)]);
  return verify(hash, data, publicKey, hash === null ? inner : derSignature(inner)) === true;
}

function sha256(data: Uint8Array): Buffer {
  return createHash('sha256').update(data).digest();
}

interface ParsedKey {
  readonly publicKey: KeyObject;
  /** Null when the algorithm hashes by itself. */
  readonly hash: string | null;
  /** Security keys only. */
  readonly application?: Uint8Array;
}

/** Undefined unless the blob is a valid key of the announced type. */
function parsePublicKey(blob: Uint8Array, keyType: string): ParsedKey | undefined {
  const key = isSshKeyType(keyType) ? parseSshPublicKey(blob, keyType) : undefined;
  switch (key?.algorithm) {
    case undefined:
      return undefined;
    case 'rsa':
      if (key.bits < rsaBits.smallest || key.bits > rsaBits.largest) return undefined;
      return { publicKey: importKey({ kty: 'RSA', n: base64url(key.modulus), e: base64url(key.exponent) }), hash: null };
    case 'ed25519':
      return { ...key, publicKey: importKey({ kty: 'OKP', crv: 'Ed25519', x: base64url(key.point) }), hash: null };
    case 'ecdsa': {
      const { jwk, hash } = curves[key.curve];
      return { ...key, publicKey: importKey({ kty: 'EC', crv: jwk, x: base64url(key.x), y: base64url(key.y) }), hash };
    }
  }
}

function importKey(key: webcrypto.JsonWebKey): KeyObject {
  return createPublicKey({ key, format: 'jwk' });
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/** SSH encodes an ECDSA signature as two mpints; OpenSSL reads a DER sequence of two integers, encoded in the same way. */
function derSignature(signature: Uint8Array): Buffer {
  const [r, s, ...rest] = readSshStrings(signature);
  if (r === undefined || s === undefined || rest.length > 0 || r.length > 33 || s.length > 33)
    throw new Error('not an ECDSA signature');
  return Buffer.concat([Buffer.of(0x30, r.length + s.length + 4, 0x02, r.length), r, Buffer.of(0x02, s.length), s]);
}
