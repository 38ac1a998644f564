// @peculiar/x509 needs the metadata of decorators and does not load without it.
import { addSeconds, secondsPerDay } from '#shared/durations.ts';
import 'reflect-metadata';
import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from '@peculiar/x509';

interface IssuedCertificate {
  /** PEM. */
  readonly certificate: string;
  /** PEM, PKCS #8. */
  readonly key: string;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Issues a self-signed certificate that may sign others, under a name of its own. @param days of validity */
export async function issueAuthority(days: number, now: Date): Promise<IssuedCertificate> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  // The random part tells the authorities of two platforms apart in one trust store.
  const name = `CN=paas local authority ${randomBytes(4).toString('hex')}`;
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerialNumber(),
    name,
    ...validity(days, now),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
}

/** Issues the certificate of a server. @param hosts names or IP addresses without brackets, at least one; @param days of validity */
export async function issueLeaf(
  authority: IssuedCertificate,
  hosts: readonly string[],
  days: number,
  now: Date,
): Promise<IssuedCertificate> {
  const issuer = new X509Certificate(authority.certificate);
  const signingKey = await crypto.subtle.importKey('pkcs8', PemConverter.decodeFirst(authority.key), algorithm, false, ['sign']);
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: newSerialNumber(),
    // The hosts are in the alternative name only: a common name has 64 characters at most.
    subject: 'CN=paas app',
    issuer: issuer.subject,
    ...validity(days, now),
    signingAlgorithm: algorithm,
    publicKey: keys.publicKey,
    signingKey,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(hosts.map((host) => ({ type: isIP(host) === 0 ? 'dns' : 'ip', value: host }))),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: await exportKey(keys.privateKey) };
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
