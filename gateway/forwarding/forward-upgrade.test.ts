import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { echo, portOf, startTestGateway, type TestGateway } from '../testing/start-test-gateway.ts';

let test: TestGateway;
beforeAll(async () => {
  test = await startTestGateway({
    timeouts: { responseMilliseconds: 1000, continueMilliseconds: 100, halfClosedMilliseconds: 200 },
  });
});
afterAll(() => test?.stop());

describe('upgrades', () => {
  it('forwards a WebSocket both ways, counts it as in flight, and closes it with either side', async () => {
    const app = createServer((_, response) => response.end('plain'));
    let upstream: Socket | undefined;
    app.on('upgrade', (incoming: IncomingMessage, socket: Socket, head: Buffer) => {
      upstream = socket;
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Key: ${incoming.headers['sec-websocket-key']}\r\n\r\n`,
      );
      socket.write(head);
      socket.pipe(socket);
    });
    await new Promise<void>((resolve) => app.listen(0, '127.0.0.1', resolve));
    const { host, route } = await test.startApp();
    await test.router.applyRoute({
      ...route,
      backends: [{ releaseVersion: 1, weight: 100, instances: [{ key: `ws-${host}`, host: '127.0.0.1', port: portOf(app) }] }],
    });
    const client = await test.connect();
    let received = '';
    client.on('data', (chunk: Buffer) => {
      received += chunk.toString();
    });
    client.write(
      `GET /ws HTTP/1.1\r\nHost: ${host}\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: abc\r\n\r\nearly`,
    );
    await expect.poll(() => received).toMatch(/^HTTP\/1.1 101 Switching Protocols\r\n[^]*X-Key: abc[^]*early$/);
    client.write(' later');
    await expect.poll(() => received.endsWith('early later')).toBe(true);
    expect(await test.router.readInFlight(`ws-${host}`)).toBe(1);
    upstream?.destroy();
    await once(client, 'close');
    await expect.poll(() => test.router.readInFlight(`ws-${host}`)).toBe(0);
    expect(await test.router.readTraffic(route.appId)).toMatchObject([{ requests: 1, errors: 0 }]);
    app.close();
  });

  it('ends a WebSocket whose client has gone, also when the app does not notice', async () => {
    const app = await test.startApp(echo);
    app.servers[0]?.on('upgrade', (_: IncomingMessage, socket: Socket) => {
      socket.on('error', () => socket.destroy());
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
    });
    const key = app.route.backends[0]?.instances[0]?.key ?? '';
    const client = await test.connect();
    client.write(`GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
    await once(client, 'data');
    expect(await test.router.readInFlight(key)).toBe(1);
    client.end();
    await expect.poll(() => test.router.readInFlight(key)).toBe(0);
  });

  it('forwards the response of an app that does not upgrade', async () => {
    const app = await test.startApp((_, response) => response.writeHead(426).end('no sockets here'));
    const answer = await test.exchange(
      `GET / HTTP/1.1\r\nHost: ${app.host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1.1 426/);
    expect(answer).toContain('no sockets here');
    expect(await test.router.readInFlight(app.route.backends[0]?.instances[0]?.key ?? '')).toBe(0);
  });

  it('serves a request to upgrade to h2c as a plain request', async () => {
    const app = await test.startApp(echo);
    const answer = await test.fetch(app.host, {
      headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': 'AAMAAABk' },
    });
    const { headers } = JSON.parse(answer.body);
    expect(answer.status).toBe(200);
    expect(headers).not.toHaveProperty('upgrade');
    expect(headers).not.toHaveProperty('http2-settings');
  });
});
