import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError, usageError } from '#cli/errors/cli-error.ts';

/** A public key in OpenSSH's text form: `type base64 comment`. */
export interface PublicKey {
  readonly path: string;
  /** The line as it stands in the file. */
  readonly text: string;
  readonly comment: string;
  /** As `ssh-keygen -lf` prints it. */
  readonly fingerprint: string;
}

const keyLine = /^([a-z0-9@.-]+) ([A-Za-z0-9+/]+={0,2})(?: (.*))?$/;
const defaultNames = ['id_ed25519.pub', 'id_ecdsa.pub', 'id_rsa.pub'] as const;

/** The first of the keys that ssh offers without being told to, the strongest kind first. */
export async function findPublicKey(home: string): Promise<PublicKey | undefined> {
  for (const name of defaultNames) {
    const key = await readPublicKey(join(home, '.ssh', name)).catch(() => undefined);
    if (key !== undefined) return key;
  }
  return undefined;
}

/** @throws CliError when there is no file, or something else than one public key in it; a private key is never read on */
export async function readPublicKey(path: string): Promise<PublicKey> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(`Cannot read ${path}.`, {
      hint: 'Give the path of a public key, as ~/.ssh/id_ed25519.pub.',
      cause: error,
    });
  }
  return parsePublicKey(text, path);
}

export function parsePublicKey(text: string, path: string): PublicKey {
  if (text.includes('PRIVATE KEY')) {
    throw usageError(`${path} is a private key, which must never leave your machine.`, `Give the public one: ${path}.pub`);
  }
  const lines = text.split('\n').flatMap((line) => (line.trim() === '' || line.startsWith('#') ? [] : [line.trim()]));
  const match = keyLine.exec(lines[0] ?? '');
  if (match?.[2] === undefined || lines.length !== 1) {
    throw usageError(
      `${path} does not hold one public key in OpenSSH's form.`,
      'It should read like: ssh-ed25519 AAAA… you@host',
    );
  }
  return { path, text: match[0], comment: match[3] ?? '', fingerprint: fingerprintOf(Buffer.from(match[2], 'base64')) };
}

/** Of each key in lines as `ssh-add -L` prints them; other lines are passed over. */
export function fingerprintsOf(lines: string): readonly string[] {
  return lines.split('\n').flatMap((line) => {
    const blob = keyLine.exec(line.trim())?.[2];
    return blob === undefined ? [] : [fingerprintOf(Buffer.from(blob, 'base64'))];
  });
}

function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
}
