import { createHash, createPublicKey, type KeyObject, verify, type webcrypto } from 'node:crypto';

/** The signature of a publickey login, as ssh2 hands it over. */
export interface SignedLogin {
  /** Key type of RFC 4253 §6.6, `ssh-rsa` for all RSA signatures. */
  readonly keyType: string;
  /** The raw public key. */
  readonly key: Uint8Array;
  /** ECDSA in DER; of security keys: the inner signature, flags and counter (OpenSSH, PROTOCOL.u2f). */
  readonly signature: Uint8Array;
  /** What was signed: session id and request (RFC 4252 §7). */
  readonly data: Uint8Array;
  /** Of RSA: `sha256` or `sha512`; undefined is SHA-1, and refused. */
  readonly rsaHash: string | undefined;
}

export const keyTypes: ReadonlySet<string> = new Set([
  'ssh-ed25519',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
]);

const curves: Readonly<Record<string, { readonly jwk: string; readonly bytes: number; readonly hash: string }>> = {
  nistp256: { jwk: 'P-256', bytes: 32, hash: 'sha256' },
  nistp384: { jwk: 'P-384', bytes: 48, hash: 'sha384' },
  nistp521: { jwk: 'P-521', bytes: 66, hash: 'sha512' },
};

const smallestRsaBits = 2048;
/** Verifying costs the square of it, before anybody has logged in. */
const largestRsaBits = 8192;

/** A security key sets it when somebody touched it. */
const userPresent = 0x01;

/** True only when the signature is good, made by exactly this key, and by an algorithm that is still sound. Never throws. */
export function verifyLogin(login: SignedLogin): boolean {
  try {
    const key = parsePublicKey(login.key, login.keyType);
    if (key === undefined) return false;
    if (key.application !== undefined) return verifySecurityKey(key.publicKey, key.application, key.hash, login);
    const hash = login.keyType === 'ssh-rsa' ? rsaHash(login.rsaHash) : key.hash;
    return hash !== undefined && verify(hash, login.data, key.publicKey, login.signature) === true;
  } catch {
    // A point off the curve, a broken DER: node:crypto throws where it cannot even try.
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
  /** Null where the algorithm hashes by itself. */
  readonly hash: string | null;
  /** Of a security key. */
  readonly application?: Uint8Array;
}

/** Undefined unless the blob is, to its last byte, one key of the type it was announced as. */
function parsePublicKey(blob: Uint8Array, keyType: string): ParsedKey | undefined {
  if (!keyTypes.has(keyType)) return undefined;
  const [type, ...fields] = readStrings(blob);
  if (type === undefined || Buffer.from(type).toString('latin1') !== keyType) return undefined;
  if (keyType === 'ssh-rsa') return parseRsa(fields);
  const application = keyType.startsWith('sk-') ? fields.pop() : undefined;
  const parsed = keyType.includes('ecdsa') ? parseEcdsa(fields, keyType) : parseEd25519(fields);
  if (parsed === undefined) return undefined;
  if (!keyType.startsWith('sk-')) return parsed;
  return application === undefined ? undefined : { ...parsed, application };
}

function parseRsa([exponent, modulus, ...rest]: readonly Uint8Array[]): ParsedKey | undefined {
  if (exponent === undefined || modulus === undefined || rest.length > 0) return undefined;
  const n = unsigned(modulus);
  const e = unsigned(exponent);
  const bits = n.length * 8;
  // A huge exponent makes one verification take seconds; 65537 is what everybody has.
  if (bits < smallestRsaBits || bits > largestRsaBits || e.length > 4) return undefined;
  return { publicKey: importKey({ kty: 'RSA', n: base64url(n), e: base64url(e) }), hash: null };
}

function parseEd25519([point, ...rest]: readonly Uint8Array[]): ParsedKey | undefined {
  if (point?.length !== 32 || rest.length > 0) return undefined;
  return { publicKey: importKey({ kty: 'OKP', crv: 'Ed25519', x: base64url(point) }), hash: null };
}

function parseEcdsa([curveName, point, ...rest]: readonly Uint8Array[], keyType: string): ParsedKey | undefined {
  if (curveName === undefined || point === undefined || rest.length > 0) return undefined;
  const name = Buffer.from(curveName).toString('latin1');
  const curve = curves[name];
  if (curve === undefined || !keyType.replace('@openssh.com', '').endsWith(`-${name}`)) return undefined;
  // 4: an uncompressed point, the only form SSH allows.
  if (point.length !== 1 + 2 * curve.bytes || point[0] !== 4) return undefined;
  const x = base64url(point.subarray(1, 1 + curve.bytes));
  const y = base64url(point.subarray(1 + curve.bytes));
  return { publicKey: importKey({ kty: 'EC', crv: curve.jwk, x, y }), hash: curve.hash };
}

function importKey(key: webcrypto.JsonWebKey): KeyObject {
  return createPublicKey({ key, format: 'jwk' });
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

function unsigned(mpint: Uint8Array): Uint8Array {
  const start = mpint.findIndex((byte) => byte !== 0);
  return start < 0 ? mpint.subarray(0, 0) : mpint.subarray(start);
}

/** The length-prefixed strings a blob consists of; empty when its lengths do not add up. */
function readStrings(blob: Uint8Array): Uint8Array[] {
  const view = new DataView(blob.buffer, blob.byteOffset, blob.byteLength);
  const strings: Uint8Array[] = [];
  let position = 0;
  while (position < blob.length) {
    if (position + 4 > blob.length || strings.length === 8) return [];
    const end = position + 4 + view.getUint32(position);
    if (end > blob.length) return [];
    strings.push(blob.subarray(position + 4, end));
    position = end;
  }
  return strings;
}

/** SSH writes an ECDSA signature as two mpints, OpenSSL reads a DER sequence of two integers, which are encoded alike. */
function derSignature(signature: Uint8Array): Buffer {
  const [r, s, ...rest] = readStrings(signature);
  if (r === undefined || s === undefined || rest.length > 0 || r.length > 33 || s.length > 33)
    throw new Error('not an ECDSA signature');
  return Buffer.concat([Buffer.of(0x30, r.length + s.length + 4, 0x02, r.length), r, Buffer.of(0x02, s.length), s]);
}
