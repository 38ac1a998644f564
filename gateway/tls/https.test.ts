import { once } from 'node:events';
import { readdir, readFile, stat } from 'node:fs/promises';
import { get } from 'node:https';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { millisecondsPerDay, millisecondsPerHour } from '#shared/durations.ts';
import { readResponse, startTestGateway, type TestGateway, type TestResponse } from '../testing/start-test-gateway.ts';

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

/** What a client sends first when it names a host. */
const recordClientHello = (servername: string): Promise<Buffer> =>
  new Promise((resolve) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', (hello: Buffer) => {
        resolve(hello);
        socket.destroy();
        server.close();
      });
    });
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      connect({ host: '127.0.0.1', port, servername }).on('error', () => undefined);
    });
  });

/** Sends it with another name of the same length, since clients of libraries refuse to name addresses. Waits for the response. */
const sendClientHello = async (hello: Buffer, name: string, other: string): Promise<void> => {
  expect(other).toHaveLength(name.length);
  const changed = Buffer.from(hello);
  changed.write(other, hello.indexOf(name), 'latin1');
  const socket = connectTcp(test.gateway.httpsPort, '127.0.0.1');
  socket.write(changed);
  await once(socket, 'data');
  socket.destroy();
};

const presentedTo = (servername: string, to = test): Promise<PeerCertificate> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port: to.gateway.httpsPort, servername, rejectUnauthorized: false }, () => {
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

  it('creates no key, file or context for addresses and names that strangers make up', async () => {
    const directory = join(test.dataDir, 'gateway', 'certificates');
    const before = await readdir(directory);
    const hello = await recordClientHello('a-name.test');
    for (let octet = 10; octet < 30; octet++) await sendClientHello(hello, 'a-name.test', `10.0.99.1${octet}`.slice(-11));
    for (let index = 10; index < 30; index++) await sendClientHello(hello, 'a-name.test', `host-${index}.lab`);
    expect(await readdir(directory)).toEqual(before);
  });

  it.each([
    ['nothing', ''],
    ['half a handshake', '\x16\x03\x01\x02\x00\x01'],
  ])('closes the connection of a client that sends %s', async (_, bytes) => {
    const started = await startTestGateway({ timeouts: { handshakeMilliseconds: 200 } });
    const socket = connectTcp(started.gateway.httpsPort, '127.0.0.1').resume();
    socket.write(bytes, 'latin1');
    await expect(once(socket, 'close')).resolves.toEqual([false]);
    await started.stop();
  });

  it('renews the certificate of the platform while it runs', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    let days = 0;
    const started = await startTestGateway({ now: () => new Date(Date.now() + days * millisecondsPerDay) });
    const serial = async () => (await presentedTo('paas.example.com', started)).serialNumber;
    const first = await serial();
    days = 61;
    vi.advanceTimersByTime(millisecondsPerHour);
    vi.useRealTimers();
    await expect.poll(serial).not.toBe(first);
    await started.stop();
  });

  it('lets only its owner read private keys', async () => {
    for (const file of ['ca-key.pem', 'certificates/paas.example.com.pem']) {
      expect((await stat(join(test.dataDir, 'gateway', file))).mode & 0o777).toBe(0o600);
    }
    expect((await stat(join(test.dataDir, 'gateway'))).mode & 0o777).toBe(0o700);
    expect(ca).not.toContain('PRIVATE');
  });
});
