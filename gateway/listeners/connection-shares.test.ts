import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { echo, startTestGateway, type TestApp, type TestGateway } from '../testing/start-test-gateway.ts';
import { roomForConnections } from './connection-shares.ts';

const mostConnections = 40;
let test: TestGateway;
const sockets: Socket[] = [];
beforeEach(async () => {
  test = await startTestGateway({ mostConnections });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await test.stop();
});

/** An app that accepts every WebSocket and keeps it open. */
async function startChat(): Promise<TestApp> {
  const app = await test.startApp(echo);
  app.servers[0]?.on('upgrade', (_: IncomingMessage, socket: Socket) => {
    socket.on('error', () => socket.destroy());
    socket.resume();
    socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n');
  });
  return app;
}

/** Opens a WebSocket that stays open. @returns the status */
async function openWebSocket(host: string): Promise<string> {
  const socket = await test.connect();
  sockets.push(socket);
  socket.on('error', () => undefined);
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  const [data] = (await once(socket, 'data')) as [Buffer];
  return data.toString().split(' ')[1] ?? '';
}

it('however many WebSockets one app has open, others are reached, and it is told why there are no more', async () => {
  const [chat, other] = [await startChat(), await test.startApp(echo)];
  await test.startApi((_, response) => void response.end('api'));
  const statuses: string[] = [];
  for (let count = 0; count < mostConnections; count++) statuses.push(await openWebSocket(chat.host));
  const accepted = statuses.filter((status) => status === '101').length;
  expect(accepted).toBeGreaterThan(mostConnections / 2 - 3);
  expect(accepted).toBeLessThan(mostConnections / 2 + 3);
  expect(new Set(statuses)).toEqual(new Set(['101', '503']));
  await expect.poll(async () => (await test.fetch(other.host)).status).toBe(200);
  expect((await test.fetch('paas.example.com')).body).toBe('api');
  const refused = await test.fetch(chat.host);
  expect(refused).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
  expect(refused.body).toContain('has as many requests and WebSockets open as the platform has room for');

  for (const socket of sockets.splice(0)) socket.destroy();
  await expect.poll(async () => (await test.fetch(chat.host)).status).toBe(200);
});

it('an app whose requests hang takes no more either', async () => {
  const [hanging, other] = [await test.startApp(() => undefined), await test.startApp(echo)];
  const statuses: number[] = [];
  for (let count = 0; count < mostConnections; count++)
    void test.fetch(hanging.host).then(
      ({ status }) => statuses.push(status),
      () => statuses.push(0),
    );
  await expect.poll(() => statuses.filter((status) => status === 503).length).toBeGreaterThan(mostConnections / 4);
  await expect.poll(async () => (await test.fetch(other.host)).status).toBe(200);
});

it('there is room for no more connections than the process may open files for them and those to the apps', () => {
  expect(roomForConnections()).toBeGreaterThan(100);
  expect(roomForConnections()).toBeLessThanOrEqual(20_000);
});
