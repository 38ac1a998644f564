import 'reflect-metadata';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, createServer } from 'node:tls';
import { promisify } from 'node:util';
import { BasicConstraintsExtension, PemConverter, X509CertificateGenerator } from '@peculiar/x509';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { issueAuthority, issueLeaf } from '#shared/tls/issue-certificate.ts';
import { permittedNames } from '#shared/tls/permitted-names.ts';
import type { Certificate, CertificateIssuer } from './certificate-issuer.ts';
import { createLocalAuthority, type LocalAuthorityOptions } from './local-authority.ts';

const permitted = permittedNames(['apps.example.com', 'paas.example.com', 'localhost', '203.0.113.5', '2001:db8::5']);
let directory: string;
let warnings: string[];
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'paas-authority-'));
  warnings = [];
});
afterEach(() => rm(directory, { recursive: true }));

const open = (options: Partial<LocalAuthorityOptions> = {}): Promise<CertificateIssuer> =>
  createLocalAuthority({
    directory,
    permitted,
    now: () => new Date(),
    log: { warn: (message) => warnings.push(message) },
    ...options,
  });
const read = (file: string): Promise<string> => readFile(join(directory, file), 'utf8');
const readPair = async () => ({ certificate: await read('ca.pem'), key: await read('ca-key.pem') });

/** How a TLS client that trusts `ca` ends its handshake with a server for `host`: 'trusted', or the message of its error. */
async function handshake({ chain, key }: Pick<Certificate, 'chain' | 'key'>, host: string, ca: string): Promise<string> {
  const server = createServer({ cert: chain, key }, (socket) => socket.on('error', () => undefined)).listen(0, '127.0.0.1');
  server.on('tlsClientError', () => undefined);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const isAddress = /^[\d.]+$|:/.test(host);
  const socket = connect({
    host: '127.0.0.1',
    port,
    ca,
    ...(isAddress ? {} : { servername: host }),
    checkServerIdentity: () => undefined,
  });
  const result = await Promise.race([
    once(socket, 'secureConnect').then(() => 'trusted'),
    once(socket, 'error').then(([error]: Error[]) => error?.message ?? ''),
  ]).catch((error: Error) => error.message);
  socket.destroy();
  server.close();
  return result;
}

describe('the local authority', () => {
  it('keeps its own certificate and those it issued over a restart, and renews them 30 days before they expire', async () => {
    const chainAfter = async (days: number): Promise<string> => {
      const authority = await open({ now: () => new Date(Date.now() + days * millisecondsPerDay) });
      return (await authority.certificateFor(['a.apps.example.com'])).chain;
    };
    const first = await chainAfter(0);
    expect(await chainAfter(59)).toBe(first);
    const renewed = await chainAfter(61);
    expect(renewed).not.toBe(first);
    expect(renewed.split('-----BEGIN').at(-1)).toBe(first.split('-----BEGIN').at(-1));
    expect(warnings).toEqual([]);
  });

  it('issues one certificate for concurrent calls, valid for exactly its hosts', async () => {
    const authority = await open();
    const chains = await Promise.all(
      Array.from({ length: 10 }, () => authority.certificateFor(['a.apps.example.com', '127.0.0.1'])),
    );
    expect(new Set(chains.map(({ chain }) => chain)).size).toBe(1);
    const leaf = new X509Certificate(chains[0]?.chain ?? '');
    expect(leaf.checkHost('a.apps.example.com')).toBe('a.apps.example.com');
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(leaf.checkHost('b.apps.example.com')).toBeUndefined();
    expect(leaf.ca).toBe(false);
  });

  it('keeps a limited number of certificates in memory, and reads the others from their files again', async () => {
    const authority = await open({ mostLoaded: 10 });
    const load = (index: number) => authority.certificateFor([`app-${index}.apps.example.com`]);
    const [first, second] = [await load(0), await load(1)];
    for (let index = 2; index < 11; index++) {
      await load(index);
      expect(await load(0)).toBe(first);
    }
    const again = await load(1);
    expect(again).not.toBe(second);
    expect(again.chain).toBe(second.chain);
  });
});

describe('the limits of the local authority', () => {
  it.each([
    'a.apps.example.com',
    'x.y.apps.example.com',
    'paas.example.com',
    'localhost',
    '127.0.0.1',
    '127.1.2.3',
    '::1',
    '203.0.113.5',
    '2001:db8::5',
  ])('permit %s', async (host) => {
    const certificate = await (await open()).certificateFor([host]);
    expect(await handshake(certificate, host, await read('ca.pem'))).toBe('trusted');
    expect(await verify(certificate.chain)).toMatch(/: OK$/m);
  });

  it.each([
    'bank.example.org',
    'example.com',
    'apps.example.com.evil.org',
    'notapps.example.com',
    '8.8.8.8',
    '203.0.113.6',
    '2001:db8::6',
  ])('make clients reject a certificate for %s that a thief of the key has issued', async (host) => {
    await open();
    const stolen = await readPair();
    const leaf = await issueLeaf(stolen, [host], 90, new Date());
    const forged = { chain: `${leaf.certificate}\n${stolen.certificate}`, key: leaf.key };
    expect(await handshake(forged, host, stolen.certificate)).toBe('permitted subtree violation');
    expect(await verify(forged.chain)).toContain('permitted subtree violation');
  });

  it('make clients reject an authority that a thief of the key has issued', async () => {
    await open();
    const stolen = await readPair();
    const between = await issueAuthority(permittedNames(['bank.example.org']), 90, new Date(), stolen);
    const leaf = await issueLeaf(between, ['bank.example.org'], 90, new Date());
    const forged = { chain: `${leaf.certificate}\n${between.certificate}`, key: leaf.key };
    expect(await handshake(forged, 'bank.example.org', stolen.certificate)).toMatch(
      /permitted subtree|path length|subject issuer/,
    );
  });

  it('do not include custom domains: the certificate of such a host signs itself, and is trusted for that host alone', async () => {
    const certificate = await (await open()).certificateFor(['www.customer.example']);
    expect(certificate.chain.match(/BEGIN CERTIFICATE/g)).toHaveLength(1);
    expect(await handshake(certificate, 'www.customer.example', await read('ca.pem'))).toMatch(/^self-signed certificate/);
    expect(await handshake(certificate, 'www.customer.example', certificate.chain)).toBe('trusted');
    const leaf = await issueLeaf({ certificate: certificate.chain, key: certificate.key }, ['bank.example.org'], 90, new Date());
    const forged = { chain: `${leaf.certificate}\n${certificate.chain}`, key: leaf.key };
    expect(await handshake(forged, 'bank.example.org', certificate.chain)).not.toBe('trusted');
    const again = await (await open()).certificateFor(['www.customer.example']);
    expect(again.chain).toBe(certificate.chain);
  });
});

describe('an authority of an earlier version, without limits', () => {
  it('gets them at the next start; clients that trust it still trust the apps, and certificates stay', async () => {
    const earlier = await writeUnlimitedAuthority();
    const issued = await issueLeaf(earlier, ['a.apps.example.com'], 90, new Date());
    await (await open({ permitted: permittedNames(['other.example.org']) })).certificateFor(['localhost']);
    await writeFile(join(directory, 'certificates', 'a.apps.example.com.pem'), `${issued.key}\n${issued.certificate}\n`);
    const authority = await open();
    const ca = await read('ca.pem');
    expect(ca).not.toContain(earlier.certificate);
    expect(warnings).toHaveLength(2);
    const certificate = await authority.certificateFor(['a.apps.example.com']);
    expect(certificate.chain).toContain(issued.certificate);
    expect(await handshake(certificate, 'a.apps.example.com', earlier.certificate)).toBe('trusted');
    expect(await handshake(certificate, 'a.apps.example.com', ca)).toBe('trusted');
    await open();
    expect(await read('ca.pem')).toBe(ca);
    expect(warnings).toHaveLength(2);
  });

  it('loses the certificates of addresses that strangers named', async () => {
    await open();
    for (const host of ['10.1.2.3', '[fe80::1]', '203.0.113.5', 'a.apps.example.com'])
      await writeFile(join(directory, 'certificates', `${host}.pem`), '');
    await open();
    expect((await readdir(join(directory, 'certificates'))).sort()).toEqual(['203.0.113.5.pem', 'a.apps.example.com.pem']);
  });
});

async function writeUnlimitedAuthority() {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=paas local authority 01234567',
    notBefore: new Date(Date.now() - millisecondsPerDay),
    notAfter: new Date(Date.now() + 3650 * millisecondsPerDay),
    signingAlgorithm: algorithm,
    keys,
    extensions: [new BasicConstraintsExtension(true, 0, true)],
  });
  const pair = {
    certificate: certificate.toString('pem'),
    key: PemConverter.encode(await crypto.subtle.exportKey('pkcs8', keys.privateKey), 'PRIVATE KEY'),
  };
  await writeFile(join(directory, 'ca.pem'), `${pair.certificate}\n`);
  await writeFile(join(directory, 'ca-key.pem'), `${pair.key}\n`);
  return pair;
}

/** What `openssl verify` prints about the first certificate of a chain. */
async function verify(chain: string): Promise<string> {
  const file = join(directory, 'chain.pem');
  await writeFile(file, chain);
  const run = promisify(execFile)('openssl', ['verify', '-purpose', 'sslserver', '-CAfile', join(directory, 'ca.pem'), file]);
  const { stdout, stderr } = await run.catch((error: { stdout: string; stderr: string }) => error);
  return stdout + stderr;
}
