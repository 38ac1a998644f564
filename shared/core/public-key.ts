import { AppError } from '#shared/errors.ts';

export interface PublicKey {
  type: string;
  blob: Uint8Array<ArrayBuffer>;
  comment: string;
}

const acceptedTypes = [
  'ssh-ed25519',
  'ecdsa-sha2-nistp256',
  'ecdsa-sha2-nistp384',
  'ecdsa-sha2-nistp521',
  'ssh-rsa',
  'sk-ssh-ed25519@openssh.com',
  'sk-ecdsa-sha2-nistp256@openssh.com',
];
const smallestRsaBits = 2048;

/** Reads one line of OpenSSH text form. Throws `validation_failed` with what is wrong and what to paste instead. */
export function parsePublicKey(text: string): PublicKey {
  const line = text.trim();
  if (/PRIVATE KEY/.test(line)) throw refuse('That is a private key. Keep it to yourself, and paste the file that ends in .pub.');
  if (/[\r\n]/.test(line)) throw refuse('Paste one key only, on one line.');
  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  if (!acceptedTypes.includes(type)) {
    throw refuse(`A key starts with one of ${acceptedTypes.join(', ')}. Make one with \`ssh-keygen -t ed25519\`.`);
  }
  const blob = decode(base64);
  if (new TextDecoder().decode(readString(blob, 0)) !== type)
    throw refuse('The key is damaged: its text and its content disagree.');
  if (type === 'ssh-rsa' && rsaBits(blob) < smallestRsaBits) {
    throw refuse(`An RSA key needs at least ${smallestRsaBits} bits. Make a better one with \`ssh-keygen -t ed25519\`.`);
  }
  checkStructure(type, blob);
  return { type, blob, comment: comment.join(' ') };
}

function refuse(message: string): AppError {
  return new AppError('validation_failed', message, { details: [{ path: 'public_key', message }] });
}

function decode(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.fromBase64(base64, { lastChunkHandling: 'strict' });
  } catch {
    throw refuse('The key is cut off or damaged. Paste the whole line of the .pub file.');
  }
}

/** Length-prefixed string of RFC 4251 at `offset`. */
function readString(blob: Uint8Array, offset: number): Uint8Array {
  const length = blob.length < offset + 4 ? -1 : new DataView(blob.buffer, blob.byteOffset + offset, 4).getUint32(0);
  if (length < 0 || offset + 4 + length > blob.length) throw refuse('The key is cut off. Paste the whole line of the .pub file.');
  return blob.subarray(offset + 4, offset + 4 + length);
}

function fields(blob: Uint8Array): Uint8Array[] {
  const found: Uint8Array[] = [];
  for (let offset = 0; offset < blob.length; ) {
    const field = readString(blob, offset);
    found.push(field);
    offset += 4 + field.length;
  }
  return found;
}

function rsaBits(blob: Uint8Array): number {
  const modulus = fields(blob)[2] ?? new Uint8Array();
  const start = modulus.findIndex((byte) => byte !== 0);
  return start < 0 ? 0 : (modulus.length - start) * 8 - Math.clz32(modulus[start] ?? 0) + 24;
}

/** Trailing bytes would make two texts of one key with two fingerprints. */
function checkStructure(type: string, blob: Uint8Array): void {
  const found = fields(blob);
  const wanted = type === 'ssh-ed25519' ? 2 : type.startsWith('sk-ecdsa') ? 4 : 3;
  const rightKeySize = !type.includes('ed25519') || found[1]?.length === 32;
  if (found.length !== wanted || !rightKeySize) throw refuse('The key is damaged: its content does not fit its type.');
}

/** Hex SHA-256 of the raw key: what a key is found by. */
export async function keyHash(blob: Uint8Array): Promise<string> {
  return (await sha256(blob)).toHex();
}

/** As `ssh-keygen -lf` prints it: `SHA256:` and base64 without padding. */
export async function fingerprint(blob: Uint8Array): Promise<string> {
  return `SHA256:${(await sha256(blob)).toBase64({ omitPadding: true })}`;
}

async function sha256(blob: Uint8Array): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new Uint8Array(blob)));
}
