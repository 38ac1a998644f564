import { chmod, link, mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { ifMissing } from '#shared/files/if-missing.ts';
import { sshFingerprint } from '#shared/ssh-public-key.ts';

/** A key pair by which clients recognize this server. */
export interface HostKey {
  /** `ssh-ed25519`, `ecdsa-sha2-nistp256` or `ssh-rsa`. */
  readonly type: string;
  /** OpenSSH private key file. */
  readonly privateKey: string;
  /** `type base64`, as in a known_hosts file after the host. */
  readonly publicKey: string;
  /** `SHA256:<base64>` as `ssh-keygen -lf` prints it. */
  readonly fingerprint: string;
}

const generateKeyPair = promisify(ssh2.utils.generateKeyPair) as (
  type: 'ed25519' | 'ecdsa' | 'rsa',
  options: { readonly bits?: number; readonly comment: string },
) => Promise<{ readonly private: string }>;

/** In order of preference. */
const kinds = [
  { type: 'ed25519', size: {} },
  { type: 'ecdsa', size: { bits: 256 } },
  { type: 'rsa', size: { bits: 3072 } },
] as const;

/**
 * Reads the host keys in `directory`, and generates those that are missing. They are kept for good, because clients
 * refuse a server whose host key has changed. Processes that call this at the same time get the same keys.
 * @returns in order of preference
 * @throws Error when a key file is readable by other users or is not a private key
 */
export async function loadHostKeys(directory: string): Promise<readonly HostKey[]> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  return Promise.all(
    kinds.map(async ({ type, size }) => {
      const file = path.join(directory, `host_${type}_key`);
      return (await readHostKey(file)) ?? (await generateHostKey(file, type, size));
    }),
  );
}

async function readHostKey(file: string): Promise<HostKey | undefined> {
  const facts = await stat(file).catch(ifMissing(undefined));
  if (facts === undefined) return undefined;
  if ((facts.mode & 0o077) !== 0) throw new Error(`The SSH host key ${file} is readable by other users. Run: chmod 600 ${file}`);
  return parseHostKey(await readFile(file, 'utf8'), file);
}

async function generateHostKey(
  file: string,
  type: 'ed25519' | 'ecdsa' | 'rsa',
  size: { readonly bits?: number },
): Promise<HostKey> {
  const pair = await generateKeyPair(type, { ...size, comment: 'paas' });
  const draft = `${file}.${process.pid}.${crypto.randomUUID()}`;
  try {
    const handle = await open(draft, 'wx', 0o600);
    try {
      await handle.writeFile(pair.private);
      await handle.sync();
    } finally {
      await handle.close();
    }
    // Unlike a rename, a link never replaces: the process that comes second uses the key of the first.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const key = await readHostKey(file);
  if (key === undefined) throw new Error(`The SSH host key ${file} disappeared while it was generated.`);
  return key;
}

async function parseHostKey(text: string, file: string): Promise<HostKey> {
  const parsed = ssh2.utils.parseKey(text);
  if (parsed instanceof Error || !parsed.isPrivateKey()) {
    throw new Error(
      `${file} is not an OpenSSH private key. Restore it from a backup, or remove it to get a new one (clients will then warn that the host key has changed).`,
    );
  }
  const blob = parsed.getPublicSSH();
  return {
    type: parsed.type,
    privateKey: text,
    publicKey: `${parsed.type} ${blob.toString('base64')}`,
    fingerprint: await sshFingerprint(blob),
  };
}
