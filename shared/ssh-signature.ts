/** Signatures that `ssh-keygen -Y sign` makes (OpenSSH, PROTOCOL.sshsig), verified by Web Crypto. */
import { isSshKeyType, parseSshPublicKey, readSshStrings } from '#shared/ssh-public-key.ts';

/** What must have been signed, and by which key. */
export interface ExpectedSignature {
  /** The raw public key. */
  key: Uint8Array;
  /** Separates the uses of signatures: `-n` of ssh-keygen. */
  namespace: string;
  message: string;
}

type Bytes = Uint8Array<ArrayBuffer>;

const armor = /^\s*-----BEGIN SSH SIGNATURE-----([A-Za-z0-9+/=\s]+)-----END SSH SIGNATURE-----\s*$/;
const magic = new TextEncoder().encode('SSHSIG');
const hashes: Readonly<Record<string, string>> = { sha256: 'SHA-256', sha512: 'SHA-512' };
/** The flag that a security key sets when somebody touched it. */
const userPresent = 0x01;

/** True only if the armored signature is by exactly this key, over this message in this namespace. Never throws. */
export async function verifySshSignature(armored: string, expected: ExpectedSignature): Promise<boolean> {
  try {
    const blob = Uint8Array.fromBase64(armor.exec(armored)?.[1] ?? '');
    const version = new DataView(blob.buffer).getUint32(magic.length);
    if (blob.length < 10 || !sameBytes(blob.subarray(0, magic.length), magic) || version !== 1) return false;
    const [key, namespace, reserved, hash, signature, ...rest] = readSshStrings(blob.subarray(magic.length + 4));
    if (key === undefined || reserved === undefined || hash === undefined || signature === undefined || rest.length > 0)
      return false;
    if (!sameBytes(key, expected.key) || textOf(namespace) !== expected.namespace) return false;
    const algorithm = hashes[textOf(hash)];
    if (algorithm === undefined) return false;
    const digest = await digestOf(algorithm, new TextEncoder().encode(expected.message));
    const signed = concat([magic, ...[namespace ?? reserved, reserved, hash, digest].map(withLength)]);
    return await verify(key, signature, signed);
  } catch {
    return false;
  }
}

async function verify(blob: Uint8Array, signatureBlob: Uint8Array, signed: Bytes): Promise<boolean> {
  const type = textOf(readSshStrings(blob)[0]);
  const key = isSshKeyType(type) ? parseSshPublicKey(blob, type) : undefined;
  if (key === undefined) return false;
  const { algorithm, signature, trailer } = splitSignature(signatureBlob);
  if (key.algorithm === 'rsa') {
    const hash = { 'rsa-sha2-256': 'SHA-256', 'rsa-sha2-512': 'SHA-512' }[algorithm];
    if (hash === undefined || trailer.length > 0) return false;
    const jwk = { kty: 'RSA', n: base64url(key.modulus), e: base64url(key.exponent) };
    const imported = await crypto.subtle.importKey('jwk', jwk, { name: 'RSASSA-PKCS1-v1_5', hash }, false, ['verify']);
    return crypto.subtle.verify('RSASSA-PKCS1-v1_5', imported, signature, signed);
  }
  if (algorithm !== type) return false;
  const message = key.application === undefined ? signed : await securityKeyMessage(key.application, trailer, signed);
  if (message === undefined || (key.application === undefined && trailer.length > 0)) return false;
  if (key.algorithm === 'ed25519') {
    const imported = await crypto.subtle.importKey('raw', copyOf(key.point), 'Ed25519', false, ['verify']);
    return crypto.subtle.verify('Ed25519', imported, signature, message);
  }
  const curve = curves[key.curve];
  const jwk = { kty: 'EC', crv: curve.name, x: base64url(key.x), y: base64url(key.y) };
  const imported = await crypto.subtle.importKey('jwk', jwk, { name: 'ECDSA', namedCurve: curve.name }, false, ['verify']);
  const numbers = readSshStrings(signature).map((number) => padded(number, curve.bytes));
  if (numbers.length !== 2) return false;
  return crypto.subtle.verify({ name: 'ECDSA', hash: curve.hash }, imported, concat(numbers), message);
}

const curves = {
  nistp256: { name: 'P-256', hash: 'SHA-256', bytes: 32 },
  nistp384: { name: 'P-384', hash: 'SHA-384', bytes: 48 },
  nistp521: { name: 'P-521', hash: 'SHA-512', bytes: 66 },
} as const;

/** Algorithm and signature, and what follows them: flags and counter of a security key. */
function splitSignature(blob: Uint8Array): { algorithm: string; signature: Bytes; trailer: Bytes } {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  const afterAlgorithm = 4 + view.getUint32(0);
  const afterSignature = afterAlgorithm + 4 + view.getUint32(afterAlgorithm);
  if (afterSignature > blob.length) throw new Error('the signature is cut off');
  return {
    algorithm: textOf(blob.subarray(4, afterAlgorithm)),
    signature: copyOf(blob.subarray(afterAlgorithm + 4, afterSignature)),
    trailer: copyOf(blob.subarray(afterSignature)),
  };
}

/** PROTOCOL.u2f: a security key signs SHA-256(application), flags, counter, SHA-256(message). Undefined if nobody touched it. */
async function securityKeyMessage(application: Uint8Array, trailer: Bytes, signed: Bytes): Promise<Bytes | undefined> {
  const flags = trailer[0];
  if (trailer.length !== 5 || flags === undefined || (flags & userPresent) === 0) return undefined;
  return concat([await digestOf('SHA-256', copyOf(application)), trailer, await digestOf('SHA-256', signed)]);
}

async function digestOf(algorithm: string, bytes: Bytes): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest(algorithm, bytes));
}

/** A number of a fixed length, without the sign byte of SSH. */
function padded(number: Uint8Array, length: number): Bytes {
  const start = number.findIndex((byte) => byte !== 0);
  const bare = start < 0 ? number.subarray(0, 0) : number.subarray(start);
  const bytes = new Uint8Array(length);
  bytes.set(bare, length - bare.length);
  return bytes;
}

function withLength(bytes: Uint8Array): Bytes {
  const out = new Uint8Array(4 + bytes.length);
  new DataView(out.buffer).setUint32(0, bytes.length);
  out.set(bytes, 4);
  return out;
}

function concat(parts: readonly Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function copyOf(bytes: Uint8Array): Bytes {
  return new Uint8Array(bytes);
}

function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, index) => byte === other[index]);
}

function textOf(bytes: Uint8Array | undefined): string {
  return String.fromCharCode(...(bytes ?? new Uint8Array()).subarray(0, 200));
}

function base64url(bytes: Uint8Array): string {
  return copyOf(bytes).toBase64({ alphabet: 'base64url', omitPadding: true });
}
