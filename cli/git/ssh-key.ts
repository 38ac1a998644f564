import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError, usageError } from '#cli/errors/cli-error.ts';

/** A public key in OpenSSH format: `type base64 comment`. */
export interface PublicKey {
  readonly path: string;
  /** The line of the file. */
  readonly text: string;
  readonly comment: string;
  /** As `ssh-keygen -lf` prints it. */
  readonly fingerprint: string;
}

const keyLine = /^([a-z0-9@.-]+) ([A-Za-z0-9+/]+={0,2})(?: (.*))?$/;
const defaultNames = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub'] as const;

/** The first public key with a default name in ~/.ssh, the strongest type first. Undefined without one. */
export async function findPublicKey(home: string): Promise<PublicKey | undefined> {
  for (const name of defaultNames) {
    const key = await readPublicKey(join(home, '.ssh', name)).catch(() => undefined);
    if (key !== undefined) return key;
  }
  return undefined;
}

/** Reads a public key file. @throws CliError if the file is missing or does not have exactly one public key */
export async function readPublicKey(path: string): Promise<PublicKey> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(`Cannot read ${path}.`, {
      hint: 'Use the path of a public key, for example ~/.ssh/id_ed25519.pub.',
      cause: error,
    });
  }
  return parsePublicKey(text, path);
}

/** @param path for errors @throws CliError if `text` is not exactly one public key */
export function parsePublicKey(text: string, path: string): PublicKey {
  if (text.includes('PRIVATE KEY')) {
    throw usageError(`${path} is a private key, which must never leave your machine.`, `Use the public key: ${path}.pub`);
  }
  const lines = text.split('\n').flatMap((line) => (line.trim() === '' || line.startsWith('#') ? [] : [line.trim()]));
  const match = keyLine.exec(lines[0] ?? '');
  if (match?.[2] === undefined || lines.length !== 1) {
    throw usageError(`${path} is not a public key in OpenSSH format.`, 'Example: ssh-ed25519 AAAA… you@host');
  }
  return { path, text: match[0], comment: match[3] ?? '', fingerprint: fingerprintOf(Buffer.from(match[2], 'base64')) };
}

/** Fingerprints of the keys in the output of `ssh-add -L`. Other lines are ignored. */
export function fingerprintsOf(lines: string): readonly string[] {
  return lines.split('\n').flatMap((line) => {
    const blob = keyLine.exec(line.trim())?.[2];
    return blob === undefined ? [] : [fingerprintOf(Buffer.from(blob, 'base64'))];
  });
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}
