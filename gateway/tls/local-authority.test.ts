import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { millisecondsPerDay } from '#shared/durations.ts';
import { readResponse, startTestGateway, type TestGateway, type TestResponse } from '../testing/start-test-gateway.ts';
import { createLocalAuthority } from './local-authority.ts';

let test: TestGateway;
let ca: string;
beforeAll(async () => {
  test = await startTestGateway();
  ca = await readFile(join(test.dataDir, 'gateway', 'ca.pem'), 'utf8');
});
afterAll(() => test?.stop());

const fetchSecurely = (host: string, servername: string | undefined): Promise<TestResponse> =>
  new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: test.gateway.httpsPort, ca, headers: { host }, agent: false };
    get(servername === undefined ? options : { ...options, servername }, (incoming) =>
      readResponse(incoming).then(resolve, reject),
    ).once('error', reject);
  });

const presentedTo = (servername: string): Promise<PeerCertificate> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: test.gateway.httpsPort, servername, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    }).once('error', reject);
  });

describe('HTTPS', () => {
  it('serves an app with a certificate that is trusted by ca.pem', async () => {
    const app = await test.startApp(
      (incoming, response) =>
        void response.end([incoming.headers['x-forwarded-proto'], incoming.headers['x-forwarded-port']].join(' ')),
    );
    expect(await fetchSecurely(app.host, app.host)).toMatchObject({ status: 200, body: `https ${test.gateway.httpsPort}` });
  });

  it('serves the platform by name, and by address to clients that name no host', async () => {
    await test.startApi((_, response) => void response.end('api'));
    expect(await fetchSecurely('paas.example.com', 'paas.example.com')).toMatchObject({ body: 'api' });
    expect(await fetchSecurely('127.0.0.1', undefined)).toMatchObject({ body: 'api' });
  });

  it('issues no certificate for a host that is not served', async () => {
    const { subjectaltname } = await presentedTo('stranger.example.org');
    expect(subjectaltname).toContain('DNS:paas.example.com');
    expect(subjectaltname).not.toContain('stranger');
    await expect(stat(join(test.dataDir, 'gateway', 'certificates', 'stranger.example.org.pem'))).rejects.toThrow('ENOENT');
  });

  it('lets only its owner read private keys', async () => {
    for (const file of ['ca-key.pem', 'certificates/paas.example.com.pem']) {
      expect((await stat(join(test.dataDir, 'gateway', file))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(join(test.dataDir, 'gateway'))).mode & 0o777).toBe(0o700);
    expect(ca).not.toContain('PRIVATE');
  });
});

describe('the local authority', () => {
  it('keeps its own certificate and those it issued over a restart, and renews them 30 days before they expire', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'paas-authority-'));
    const days = (count: number) => () => new Date(Date.now() + count * millisecondsPerDay);
    const chainAfter = async (count: number): Promise<string> => {
      const authority = await createLocalAuthority(directory, days(count));
      return (await authority.certificateFor(['a.example.com'])).chain;
    };
    const first = await chainAfter(0);
    expect(await chainAfter(59)).toBe(first);
    const renewed = await chainAfter(61);
    expect(renewed).not.toBe(first);
    expect(renewed.split('-----BEGIN').at(-1)).toBe(first.split('-----BEGIN').at(-1));
    await rm(directory, { recursive: true });
  });

  it('issues one certificate for concurrent calls, valid for exactly its hosts', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'paas-authority-'));
    const authority = await createLocalAuthority(directory, () => new Date());
    const chains = await Promise.all(Array.from({ length: 10 }, () => authority.certificateFor(['a.example.com', '127.0.0.1'])));
    expect(new Set(chains.map(({ chain }) => chain)).size).toBe(1);
    const leaf = new X509Certificate(chains[0]?.chain ?? '');
    expect(leaf.checkHost('a.example.com')).toBe('a.example.com');
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(leaf.checkHost('b.example.com')).toBeUndefined();
    expect(leaf.ca).toBe(false);
    await rm(directory, { recursive: true });
  });
});
