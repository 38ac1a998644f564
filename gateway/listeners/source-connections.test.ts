import { once } from 'node:events';
import type { Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { connect as connectSecurely } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { issueLeaf } from '#shared/tls/issue-certificate.ts';
import { startTestGateway } from '../testing/start-test-gateway.ts';
import { createHttpServer } from './http-servers.ts';
import { limitSources, type SourceConnections } from './source-connections.ts';

const open: (Server | Socket)[] = [];
afterEach(() => {
  for (const each of open.splice(0)) {
    if ('listen' in each) each.close().closeAllConnections();
    else each.destroy();
  }
});

const warnings: unknown[] = [];
let seconds = 0;

/** Two servers that share a limit of 3. */
async function startServers(exempt?: string): Promise<{ sources: SourceConnections; ports: number[] }> {
  warnings.length = 0;
  const sources = limitSources({
    most: 3,
    mostOfAll: 1000,
    isExempt: (address) => address === exempt,
    now: () => new Date(seconds * 1000),
    log: { warn: (_, fields) => warnings.push(fields) },
  });
  const ports = await Promise.all(
    [0, 1].map(async () => {
      const nothing = (): void => undefined;
      const server = createHttpServer({
        request: (_, response) => void response.end('ok'),
        checkContinue: nothing,
        checkExpectation: nothing,
        connect: nothing,
        upgrade: nothing,
        clientError: nothing,
        tooManyConnections: nothing,
      });
      sources.limit(server, (socket) => void socket.end('too many'));
      server.listen(0, '127.0.0.1');
      open.push(server);
      await once(server, 'listening');
      return (server.address() as AddressInfo).port;
    }),
  );
  return { sources, ports };
}

/** What a client from the address receives for a request. Its connection stays open if the server leaves it open. */
async function ask(port: number, localAddress: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', localAddress });
  open.push(socket);
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString().split('\r\n')[0] ?? '';
}

describe('the connections of one source', () => {
  it('are limited over both servers, without an effect on other sources', async () => {
    const { ports } = await startServers();
    const [http = 0, https = 0] = ports;
    for (const port of [http, https, http]) expect(await ask(port, '127.0.0.2')).toBe('HTTP/1.1 200 OK');
    for (const port of ports) expect(await ask(port, '127.0.0.2')).toBe('too many');
    expect(await ask(http, '127.0.0.3')).toBe('HTTP/1.1 200 OK');
    expect(warnings).toEqual([{ source: '127.0.0.2', most: 3 }]);
  });

  it('are forgotten when they are closed', async () => {
    const { sources, ports } = await startServers();
    for (let address = 1; address < 20; address++) await ask(ports[0] ?? 0, `127.0.1.${address}`);
    expect(sources.size).toBe(19);
    for (const each of open) if (!('listen' in each)) each.destroy();
    await expect.poll(() => sources.size).toBe(0);
    expect(await ask(ports[0] ?? 0, '127.0.1.1')).toBe('HTTP/1.1 200 OK');
  });

  it('are not limited for an exempt address', async () => {
    const { sources, ports } = await startServers('127.0.0.9');
    for (let count = 0; count < 10; count++) expect(await ask(ports[0] ?? 0, '127.0.0.9')).toBe('HTTP/1.1 200 OK');
    expect(sources.size).toBe(0);
  });

  it('are logged once a minute at most', async () => {
    const { ports } = await startServers();
    for (let count = 0; count < 10; count++) await ask(ports[0] ?? 0, '127.0.0.2');
    expect(warnings).toHaveLength(1);
    seconds += 60;
    await ask(ports[0] ?? 0, '127.0.0.2');
    expect(warnings).toHaveLength(2);
  });

  it('are limited before a TLS handshake', async () => {
    const { certificate: cert, key } = await issueLeaf(undefined, ['localhost'], 1, new Date());
    const server = createSecureServer({ cert, key }, (_, response) => void response.end('ok'));
    limitSources({ most: 1, mostOfAll: 10, isExempt: () => false, now: () => new Date(), log: { warn: () => undefined } }).limit(
      server,
    );
    server.listen(0, '127.0.0.1');
    open.push(server);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const handshake = async (): Promise<void> => {
      const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' });
      open.push(socket);
      await once(connectSecurely({ socket, rejectUnauthorized: false }), 'secureConnect');
    };
    await handshake();
    await expect(handshake()).rejects.toThrow('disconnected before secure TLS connection');
  });

  it('are not limited by the gateway on the loopback', async () => {
    const test = await startTestGateway({}, undefined, { connectionsPerAddress: 1 });
    for (let count = 0; count < 5; count++) {
      const socket = await test.connect();
      open.push(socket);
      socket.write('GET / HTTP/1.1\r\nHost: nobody.apps.localhost\r\n\r\n');
      expect(String(await once(socket, 'data'))).toContain('404 Not Found');
    }
    await test.stop();
  });
});
