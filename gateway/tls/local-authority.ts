import { X509Certificate } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { millisecondsPerDay } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { Certificate, CertificateIssuer } from './certificate-issuer.ts';

const authorityDays = 3650;
const leafDays = 90;
/** A certificate is issued again when it is valid for less than this. */
const renewDays = 30;

interface KeyPair {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

type Hosts = Parameters<CertificateIssuer['certificateFor']>[0];

/**
 * A certificate authority of this machine: `ca.pem` (for `curl --cacert`, or a browser's trust store) and `ca-key.pem`
 * (mode 600) in `directory`, created once. The certificates of hosts are stored in `certificates/`.
 */
export async function createLocalAuthority(directory: string, now: () => Date): Promise<CertificateIssuer> {
  const leaves = join(directory, 'certificates');
  await mkdir(leaves, { recursive: true, mode: 0o700 });
  const authority = await ensureAuthority(directory, now());
  const issued = new Map<string, { readonly certificate: Promise<Certificate>; renewAt: number }>();

  const fileOf = (host: string): string => join(leaves, `${host}.pem`);
  const readOrIssue = async (hosts: Hosts): Promise<[Certificate, renewAt: number]> => {
    const file = fileOf(hosts[0]);
    const leaf = (await readLeaf(file, hosts, authority, now())) ?? (await issueAndStore(file, hosts, authority, now()));
    const [chain, key] = [`${leaf.certificate}\n${authority.certificate}\n`, leaf.key];
    const context = createSecureContext({ key, cert: chain, minVersion: 'TLSv1.2' });
    return [{ chain, key, context, expiresAt: expiryOf(leaf) }, renewalOf(leaf)];
  };

  return {
    certificateFor(hosts) {
      const known = issued.get(hosts[0]);
      if (known !== undefined && known.renewAt > now().getTime()) return known.certificate;
      const issuing = readOrIssue(hosts);
      // Calls in the meantime wait for this one.
      const entry = { certificate: issuing.then(([certificate]) => certificate), renewAt: Number.POSITIVE_INFINITY };
      issued.set(hosts[0], entry);
      issuing.then(
        ([, renewAt]) => {
          entry.renewAt = renewAt;
        },
        () => issued.delete(hosts[0]),
      );
      return entry.certificate;
    },
    async deleteCertificate(host) {
      const file = fileOf(host);
      // One that is being issued would be written after it was deleted.
      await issued.get(host)?.certificate.catch(() => undefined);
      issued.delete(host);
      const existed = (await readIfThere(file)) !== undefined;
      await rm(file, { force: true });
      return existed;
    },
  };
}

async function ensureAuthority(directory: string, now: Date): Promise<KeyPair> {
  const [certificateFile, keyFile] = [join(directory, 'ca.pem'), join(directory, 'ca-key.pem')];
  const [certificate, key] = [await readIfThere(certificateFile), await readIfThere(keyFile)];
  if (certificate !== undefined && key !== undefined) return { certificate: certificate.trimEnd(), key: key.trimEnd() };
  const { issueAuthority } = await import('./issue-certificate.ts');
  const authority = await issueAuthority(authorityDays, now);
  // The key first: a certificate without its key would be trusted by clients and then replaced.
  await replaceFile(keyFile, `${authority.key}\n`, 0o600);
  await replaceFile(certificateFile, `${authority.certificate}\n`, 0o644);
  return authority;
}

async function issueAndStore(file: string, hosts: Hosts, authority: KeyPair, now: Date): Promise<KeyPair> {
  // Loaded on demand: at most starts every certificate is on disk already.
  const { issueLeaf } = await import('./issue-certificate.ts');
  const leaf = await issueLeaf(authority, hosts, leafDays, now);
  await replaceFile(file, `${leaf.key}\n${leaf.certificate}\n`, 0o600);
  return leaf;
}

const leafPattern =
  /^(-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----)\s+(-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----)\s*$/s;

/** Undefined when there is none, it is due for renewal, is not valid for all of `hosts`, or is of another authority. */
async function readLeaf(file: string, hosts: Hosts, authority: KeyPair, now: Date): Promise<KeyPair | undefined> {
  const [, key, certificate] = leafPattern.exec((await readIfThere(file)) ?? '') ?? [];
  if (key === undefined || certificate === undefined) return undefined;
  const leaf = new X509Certificate(certificate);
  const isUsable =
    leaf.verify(new X509Certificate(authority.certificate).publicKey) &&
    renewalOf({ key, certificate }) > now.getTime() &&
    hosts.every((host) => (isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host)) !== undefined);
  return isUsable ? { key, certificate } : undefined;
}

/** Milliseconds since 1970. */
function renewalOf(leaf: KeyPair): number {
  return expiryOf(leaf).getTime() - renewDays * millisecondsPerDay;
}

function expiryOf({ certificate }: KeyPair): Date {
  return new Date(new X509Certificate(certificate).validTo);
}

async function readIfThere(file: string): Promise<string | undefined> {
  return await readFile(file, 'utf8').catch(ifMissing(undefined));
}
