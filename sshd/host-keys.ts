import { chmod, link, mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import ssh2 from 'ssh2';
import { ifMissing } from '#shared/files/if-missing.ts';
import { sshFingerprint } from '#shared/ssh-public-key.ts';

export interface HostKey {
  /** `ssh-ed25519`, `ecdsa-sha2-nistp256` or `ssh-rsa`. */
  readonly type: string;
  /** OpenSSH private key file. */
  readonly privateKey: string;
  /** `type base64`, as it stands in a known_hosts file after the host. */
  readonly publicKey: string;
  /** `SHA256:<base64>` as `ssh-keygen -lf` prints it. */
  readonly fingerprint: string;
}

const generateKeyPair = promisify(ssh2.utils.generateKeyPair) as (
  type: 'ed25519' | 'ecdsa' | 'rsa',
  options: { readonly bits?: number; readonly comment: string },
) => Promise<{ readonly private: string }>;

/** In the order of preference. */
const kinds = [
  { type: 'ed25519', size: {} },
  { type: 'ecdsa', size: { bits: 256 } },
  { type: 'rsa', size: { bits: 3072 } },
] as const;

/**
 * The server's identity: read from `directory`, or made there once and kept, because clients refuse a changed host key.
 * Several processes may call it at the same time and get the same keys.
 *
 * @throws Error when a key file is readable by others or is not a private key
 */
export async function loadHostKeys(directory: string): Promise<readonly HostKey[]> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  return Promise.all(
    kinds.map(async ({ type, size }) => {
      const file = path.join(directory, `host_${type}_key`);
      return (await readHostKey(file)) ?? (await makeHostKey(file, type, size));
    }),
  );
}

async function readHostKey(file: string): Promise<HostKey | undefined> {
  const facts = await stat(file).catch(ifMissing(undefined));
  if (facts === undefined) return undefined;
  if ((facts.mode & 0o077) !== 0) throw new Error(`The SSH host key ${file} can be read by others. Run: chmod 600 ${file}`);
  return parseHostKey(await readFile(file, 'utf8'), file);
}

async function makeHostKey(file: string, type: 'ed25519' | 'ecdsa' | 'rsa', size: { readonly bits?: number }): Promise<HostKey> {
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
    // A link fails where a rename would replace: whoever comes second takes the key that is there.
    await link(draft, file).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(draft, { force: true });
  }
  const key = await readHostKey(file);
  if (key === undefined) throw new Error(`The SSH host key ${file} vanished while it was made.`);
  return key;
}

async function parseHostKey(text: string, file: string): Promise<HostKey> {
  const parsed = ssh2.utils.parseKey(text);
  if (parsed instanceof Error || !parsed.isPrivateKey()) {
    throw new Error(
      `${file} is not an OpenSSH private key. Restore it from a backup, or remove it to get a new one (clients will then warn).`,
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
