import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HandshakeScheduler } from './handshake-scheduler.ts';

/** Counts iterations of the event loop. */
let iteration = 0;
/** What arrived, and in which iteration. */
let arrived: { iteration: number; text: string }[] = [];
let server: Server;
let accepted: Socket[] = [];
let clients: Socket[] = [];
let counting: NodeJS.Immediate;

const count = (): void => {
  iteration += 1;
  counting = setImmediate(count);
};

/** Takes as long as a key exchange, by the same clock as the budget: CPU time also counts V8's other threads. */
function compute(): void {
  for (const end = performance.now() + 3; performance.now() < end; );
}

beforeEach(async () => {
  iteration = 0;
  arrived = [];
  accepted = [];
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on('data', (data) => {
      arrived.push({ iteration, text: data.toString('latin1') });
      compute();
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  clients = Array.from({ length: 10 }, () => connect(port, '127.0.0.1'));
  await Promise.all(clients.map((client) => once(client, 'connect')));
  await expect.poll(() => accepted.length).toBe(10);
  count();
});
afterEach(async () => {
  clearImmediate(counting);
  for (const socket of [...clients, ...accepted]) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const loggedIn = { authenticated: () => true, gone: new AbortController().signal };
const anonymous = { authenticated: () => false, gone: new AbortController().signal };
const texts = (): string[] => arrived.map(({ text }) => text).sort();

test('key exchanges of clients that connect at once run in an iteration of the event loop each', async () => {
  const scheduler = new HandshakeScheduler();
  for (const socket of accepted) scheduler.schedule(socket, anonymous);
  for (const [i, client] of clients.entries()) client.write(`${i}`);
  await expect.poll(() => texts()).toEqual([...'0123456789']);
  expect(new Set(arrived.map((each) => each.iteration)).size).toBe(10);
});

test('data after the login is passed on at once, but never before data from before it', async () => {
  const scheduler = new HandshakeScheduler();
  let authenticated = false;
  const [first, second, ...others] = accepted;
  for (const socket of others) scheduler.schedule(socket, anonymous);
  if (first !== undefined) scheduler.schedule(first, loggedIn);
  if (second !== undefined) scheduler.schedule(second, { ...anonymous, authenticated: () => authenticated });
  for (const socket of others) socket.emit('data', Buffer.from('o'));
  second?.emit('data', Buffer.from('a'));
  authenticated = true;
  second?.emit('data', Buffer.from('b'));
  first?.emit('data', Buffer.from('f'));
  expect(texts()).toEqual(['f']);
  await expect.poll(() => arrived.length).toBe(11);
  expect(arrived.slice(-2).map(({ text }) => text)).toEqual(['a', 'b']);
  second?.emit('data', Buffer.from('c'));
  expect(arrived.at(-1)?.text).toBe('c');
});

test('the queued data of a connection that has ended is dropped, and that of the others is passed on', async () => {
  const scheduler = new HandshakeScheduler();
  const ends = new AbortController();
  for (const socket of accepted)
    scheduler.schedule(socket, socket === accepted[3] ? { ...anonymous, gone: ends.signal } : anonymous);
  for (const [i, socket] of accepted.entries()) socket.emit('data', Buffer.from(`${i}`));
  ends.abort();
  await expect.poll(() => texts()).toEqual([...'012456789']);
});
