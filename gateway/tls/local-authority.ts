import { X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { millisecondsPerDay } from '#shared/durations.ts';
import { ifMissing } from '#shared/files/if-missing.ts';
import { replaceFile } from '#shared/files/replace-file.ts';
import type { Log } from '#shared/log.ts';
import { encodeNameConstraints, isPermitted, type PermittedNames } from '#shared/tls/permitted-names.ts';
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

export interface LocalAuthorityOptions {
  readonly directory: string;
  /** What the authority's own certificate limits it to. */
  readonly permitted: PermittedNames;
  readonly now: () => Date;
  readonly log: Pick<Log, 'warn'>;
  /** Certificates kept in memory (1000 by default). Others are read from their files again. */
  readonly mostLoaded?: number;
}

/**
 * A certificate authority of this machine: `ca.pem` (for `curl --cacert`, or a browser's trust store) and `ca-key.pem`
 * (mode 600) in `directory`, created once. The certificates of hosts are stored in `certificates/`. The authority is limited to
 * the permitted names (docs/decisions/0029-a-local-authority-with-name-constraints.md): the certificate of another host, a custom
 * domain, signs itself.
 */
export async function createLocalAuthority(options: LocalAuthorityOptions): Promise<CertificateIssuer> {
  const { directory, permitted, now, mostLoaded = 1000 } = options;
  const leaves = join(directory, 'certificates');
  await mkdir(leaves, { recursive: true, mode: 0o700 });
  const authority = await ensureAuthority(options);
  await deleteAddresses(leaves, permitted);
  const issued = new Map<string, { readonly certificate: Promise<Certificate>; renewAt: number }>();

  const fileOf = (host: string): string => join(leaves, `${host}.pem`);
  const readOrIssue = async (hosts: Hosts): Promise<[Certificate, renewAt: number]> => {
    const file = fileOf(hosts[0]);
    const issuer = hosts.every((host) => isPermitted(permitted, host)) ? authority : undefined;
    const leaf = (await readLeaf(file, hosts, issuer, now())) ?? (await issueAndStore(file, hosts, issuer, now()));
    const chain = [leaf, ...(issuer === undefined ? [] : [issuer])].map(({ certificate }) => `${certificate}\n`).join('');
    const context = createSecureContext({ key: leaf.key, cert: chain, minVersion: 'TLSv1.2' });
    return [{ chain, key: leaf.key, context, expiresAt: expiryOf(leaf) }, renewalOf(leaf)];
  };

  return {
    certificateFor(hosts) {
      const known = issued.get(hosts[0]);
      issued.delete(hosts[0]);
      if (known !== undefined && known.renewAt > now().getTime()) {
        issued.set(hosts[0], known);
        return known.certificate;
      }
      const issuing = readOrIssue(hosts);
      // Calls in the meantime wait for this one.
      const entry = { certificate: issuing.then(([certificate]) => certificate), renewAt: Number.POSITIVE_INFINITY };
      issued.set(hosts[0], entry);
      const [leastRecent] = issued.keys();
      if (issued.size > mostLoaded && leastRecent !== undefined) issued.delete(leastRecent);
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

/** An authority with other limits, or one that expires soon, is replaced by one with the same key, which issued certificates keep. */
async function ensureAuthority({ directory, permitted, now, log }: LocalAuthorityOptions): Promise<KeyPair> {
  const [certificateFile, keyFile] = [join(directory, 'ca.pem'), join(directory, 'ca-key.pem')];
  const [certificate, key] = [await readIfThere(certificateFile), await readIfThere(keyFile)];
  const earlier =
    certificate === undefined || key === undefined ? undefined : { certificate: certificate.trimEnd(), key: key.trimEnd() };
  if (earlier !== undefined && isCurrent(earlier, permitted, now())) return earlier;
  const { issueAuthority } = await import('#shared/tls/issue-certificate.ts');
  const authority = await issueAuthority(permitted, authorityDays, now(), earlier);
  // The key first: a certificate without its key would be trusted by clients and then replaced.
  await replaceFile(keyFile, `${authority.key}\n`, 0o600);
  await replaceFile(certificateFile, `${authority.certificate}\n`, 0o644);
  if (earlier !== undefined) {
    const what = { file: certificateFile, domains: permitted.domains };
    log.warn('the local certificate authority has new limits; replace its certificate wherever it was imported', what);
  }
  return authority;
}

function isCurrent(authority: KeyPair, permitted: PermittedNames, now: Date): boolean {
  const { raw, keyUsage } = new X509Certificate(authority.certificate);
  // `keyUsage` is the extended key usage. Node has no other access to the extensions.
  const isLimited = raw.includes(encodeNameConstraints(permitted)) && keyUsage?.length === 1;
  return isLimited && renewalOf(authority) > now.getTime();
}

/** Earlier versions issued a certificate for every address that a client named. */
async function deleteAddresses(leaves: string, permitted: PermittedNames): Promise<void> {
  for (const file of await readdir(leaves)) {
    const host = file.replace(/\.pem$/, '').replace(/^\[(.*)\]$/, '$1');
    if (isIP(host) !== 0 && !isPermitted(permitted, host)) await rm(join(leaves, file), { force: true });
  }
}

async function issueAndStore(file: string, hosts: Hosts, authority: KeyPair | undefined, now: Date): Promise<KeyPair> {
  // Loaded on demand: at most starts every certificate is on disk already.
  const { issueLeaf } = await import('#shared/tls/issue-certificate.ts');
  const leaf = await issueLeaf(authority, hosts, leafDays, now);
  await replaceFile(file, `${leaf.key}\n${leaf.certificate}\n`, 0o600);
  return leaf;
}

const leafPattern =
  /^(-----BEGIN PRIVATE KEY-----.*?-----END PRIVATE KEY-----)\s+(-----BEGIN CERTIFICATE-----.*-----END CERTIFICATE-----)\s*$/s;

/** Undefined when there is none, it is due for renewal, is not valid for all of `hosts`, or is of another authority. */
async function readLeaf(file: string, hosts: Hosts, authority: KeyPair | undefined, now: Date): Promise<KeyPair | undefined> {
  const [, key, certificate] = leafPattern.exec((await readIfThere(file)) ?? '') ?? [];
  if (key === undefined || certificate === undefined) return undefined;
  const leaf = new X509Certificate(certificate);
  const isUsable =
    leaf.verify(authority === undefined ? leaf.publicKey : new X509Certificate(authority.certificate).publicKey) &&
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
