import { AppError } from '#shared/errors.ts';
import { isSshKeyType, parseSshPublicKey, rsaBits, type SshKeyType, sshKeyTypes } from '#shared/ssh-public-key.ts';

export interface PublicKey {
  type: SshKeyType;
  blob: Uint8Array<ArrayBuffer>;
  comment: string;
}

/** Reads one line of OpenSSH text form. Throws `validation_failed` with what is wrong and what to paste instead. */
export function parsePublicKey(text: string): PublicKey {
  const line = text.trim();
  if (/PRIVATE KEY/.test(line)) throw refuse('That is a private key. Keep it to yourself, and paste the file that ends in .pub.');
  if (/[\r\n]/.test(line)) throw refuse('Paste one key only, on one line.');
  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  if (!isSshKeyType(type)) {
    throw refuse(`A key starts with one of ${sshKeyTypes.join(', ')}. Make one with \`ssh-keygen -t ed25519\`.`);
  }
  const blob = decode(base64);
  const key = parseSshPublicKey(blob, type);
  if (key === undefined) {
    throw refuse('The key is cut off or damaged: its content does not fit its type. Paste the whole line of the .pub file.');
  }
  if (key.algorithm === 'rsa' && (key.bits < rsaBits.smallest || key.bits > rsaBits.largest)) {
    throw refuse(
      `An RSA key has at least ${rsaBits.smallest} bits and at most ${rsaBits.largest}. Make a better one with \`ssh-keygen -t ed25519\`.`,
    );
  }
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
