/**
 * Public keys in SSH's wire format: RFC 4253 §6.6 (RSA), RFC 5656 §3.1 (ECDSA), RFC 8709 §4 (Ed25519), and OpenSSH's
 * PROTOCOL.u2f (security keys). Shared, so that registering a key and verifying with it agree on what a key is.
 */

/** The supported key types. */
export const sshKeyTypes = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
] as const;

/** A supported key type. */
export type SshKeyType = (typeof sshKeyTypes)[number];

/** Whether the key type is supported. */
export function isSshKeyType(name: string): name is SshKeyType {
  return sshKeyTypes.some((type) => type === name);
}

/** Limits of RSA keys: the time to verify a signature grows with the square of the bits, and clients need no login for it. */
export const rsaBits = { smallest: 2048, largest: 8192 };

/** A parsed key. Numbers are big-endian without leading zeros; only security keys have an `application`. */
export type SshPublicKey =
  | { readonly algorithm: 'rsa'; readonly bits: number; readonly modulus: Uint8Array; readonly exponent: Uint8Array }
  | { readonly algorithm: 'ed25519'; readonly point: Uint8Array; readonly application?: Uint8Array }
  | {
      readonly algorithm: 'ecdsa';
      readonly curve: EcdsaCurve;
      readonly x: Uint8Array;
      readonly y: Uint8Array;
      readonly application?: Uint8Array;
    };

/** A curve of RFC 5656 §10.1. */
export type EcdsaCurve = 'nistp256' | 'nistp384' | 'nistp521';

const coordinateBytes: Readonly<Record<EcdsaCurve, number>> = { nistp256: 32, nistp384: 48, nistp521: 66 };

/**
 * Parses a raw public key. Undefined unless the whole blob is one key of that type: with extra bytes one key would have two
 * fingerprints. RSA keys of any size are accepted; see `rsaBits`.
 */
export function parseSshPublicKey(blob: Uint8Array, type: SshKeyType): SshPublicKey | undefined {
  const [name, ...fields] = readSshStrings(blob);
  if (name === undefined || latin1(name) !== type) return undefined;
  if (type === 'ssh-rsa') return parseRsa(fields);
  if (!type.startsWith('sk-')) return parsePoint(fields, type);
  const application = fields.pop();
  const key = parsePoint(fields, type);
  return key === undefined || application === undefined ? undefined : { ...key, application };
}

function parseRsa([exponent, modulus, ...rest]: readonly Uint8Array[]): SshPublicKey | undefined {
  if (exponent === undefined || modulus === undefined || rest.length > 0) return undefined;
  const e = withoutZeros(exponent);
  const n = withoutZeros(modulus);
  // With a huge exponent one verification takes seconds. Real keys have 65537.
  if (e.length === 0 || e.length > 4 || n.length === 0) return undefined;
  return { algorithm: 'rsa', bits: n.length * 8 - Math.clz32(n[0] ?? 0) + 24, modulus: n, exponent: e };
}

function parsePoint(fields: readonly Uint8Array[], type: SshKeyType): Exclude<SshPublicKey, { algorithm: 'rsa' }> | undefined {
  if (type.includes('ed25519')) {
    const [point, ...rest] = fields;
    return point?.length === 32 && rest.length === 0 ? { algorithm: 'ed25519', point } : undefined;
  }
  const [curveName, point, ...rest] = fields;
  if (curveName === undefined || point === undefined || rest.length > 0) return undefined;
  const curve = latin1(curveName);
  if (!isCurve(curve) || !type.replace('@openssh.com', '').endsWith(`-${curve}`)) return undefined;
  const bytes = coordinateBytes[curve];
  // 4: an uncompressed point, the only form SSH allows.
  if (point.length !== 1 + 2 * bytes || point[0] !== 4) return undefined;
  return { algorithm: 'ecdsa', curve, x: point.subarray(1, 1 + bytes), y: point.subarray(1 + bytes) };
}

function isCurve(name: string): name is EcdsaCurve {
  return Object.hasOwn(coordinateBytes, name);
}

/** The length-prefixed strings (RFC 4251 §5) of a blob; empty when it is malformed or has more than eight. */
export function readSshStrings(blob: Uint8Array): Uint8Array[] {
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

function withoutZeros(mpint: Uint8Array): Uint8Array {
  const start = mpint.findIndex((byte) => byte !== 0);
  return start < 0 ? mpint.subarray(0, 0) : mpint.subarray(start);
}

function latin1(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes.subarray(0, 64));
}

/** Hex SHA-256 of the raw key, by which registered keys are found. */
export async function sshKeyHash(blob: Uint8Array): Promise<string> {
  return (await sha256(blob)).toHex();
}

/** The fingerprint as `ssh-keygen -lf` prints it: `SHA256:` and base64 without padding. */
export async function sshFingerprint(blob: Uint8Array): Promise<string> {
  return `SHA256:${(await sha256(blob)).toBase64({ omitPadding: true })}`;
}

async function sha256(blob: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(blob)));
}
