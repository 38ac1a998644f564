// @peculiar/x509 needs the metadata of decorators and does not load without it.
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import 'reflect-metadata';
import { randomBytes, type webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  Extension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  type X509CertificateCreateSelfSignedParams,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { encodeNameConstraints, type PermittedNames } from '#shared/tls/permitted-names.ts';

interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** The object identifier of the extension nameConstraints. */
const nameConstraints = '2.5.29.30';

/**
 * Issues a self-signed certificate that may sign certificates of servers with permitted names. It gets a name and a key of its own,
 * or those of `earlier`: whoever trusts that one then also trusts what this one signs.
 * @param days of validity
 */
export async function issueAuthority(
  permitted: PermittedNames,
  days: number,
  now: Date,
  earlier?: IssuedCertificate,
): Promise<IssuedCertificate> {
  const keys = await (earlier === undefined ? newKeys() : readKeys(earlier));
  // The random part tells the authorities of two platforms apart in one trust store.
  const name = `CN=paas local authority ${randomBytes(4).toString('hex')}`;
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerialNumber(),
    name: earlier === undefined ? name : new X509Certificate(earlier.certificate).subject,
    ...validity(days, now),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new Extension(nameConstraints, true, Uint8Array.from(encodeNameConstraints(permitted)).buffer),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

/**
 * Issues the certificate of a server.
 * @param authority undefined: the certificate signs itself, so that its key is good for no other host
 * @param hosts names or IP addresses without brackets, at least one
 * @param days of validity
 */
export async function issueLeaf(
  authority: IssuedCertificate | undefined,
  hosts: readonly string[],
  days: number,
  now: Date,
): Promise<IssuedCertificate> {
  const keys = await newKeys();
  const common = {
    serialNumber: newSerialNumber(),
    ...validity(days, now),
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  };
  const certificate = await (authority === undefined
    ? X509CertificateGenerator.createSelfSigned({ ...common, name: subject, keys })
    : issueSigned(authority, common, keys.publicKey));
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

/** The hosts are in the alternative name only: a common name has 64 characters at most. */
const subject = 'CN=paas app';

async function issueSigned(
  authority: IssuedCertificate,
  common: Omit<X509CertificateCreateSelfSignedParams, 'keys' | 'name'>,
  publicKey: CryptoKey,
): Promise<X509Certificate> {
  const issuer = new X509Certificate(authority.certificate);
  return await X509CertificateGenerator.create({
    ...common,
    subject,
    issuer: issuer.subject,
    publicKey,
    signingKey: (await readKeys(authority)).privateKey,
    extensions: [...(common.extensions ?? []), await AuthorityKeyIdentifierExtension.create(issuer.publicKey)],
  });
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

async function readKeys({ certificate, key }: IssuedCertificate): Promise<webcrypto.CryptoKeyPair> {
  return {
    privateKey: await crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(key), algorithm, true, ['sign']),
    publicKey: await new X509Certificate(certificate).publicKey.export(),
  };
}

/** From a day ago, for clients whose clock is behind. */
function validity(days: number, now: Date): { notBefore: Date; notAfter: Date } {
  return { notBefore: addSeconds(now, -secondsPerDay), notAfter: addSeconds(now, days * secondsPerDay) };
}

/** 127 bits, positive. */
function newSerialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

async function exportKey(key: CryptoKey): Promise<string> {
  return PemConverter.encode(await crypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY');
}
