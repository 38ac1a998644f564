import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { HandshakeTurns } from './handshake-scheduler.ts';

/** The turn of the event loop, and what each of the accepted sockets brought in it. */
let turn = 0;
let brought: { turn: number; text: string }[] = [];
let server: Server;
let accepted: Socket[] = [];
let clients: Socket[] = [];
let counting: NodeJS.Immediate;

const count = (): void => {
  turn += 1;
  counting = setImmediate(count);
};

/** Takes as long as a key exchange, by the same clock as the budget: CPU time also counts V8's other threads. */
function compute(): void {
  for (const end = performance.now() + 3; performance.now() < end; );
}

beforeEach(async () => {
  turn = 0;
  brought = [];
  accepted = [];
  server = createServer((socket) => {
    accepted.push(socket);
    socket.on('data', (data) => {
      brought.push({ turn, text: data.toString('latin1') });
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

const inside = { authenticated: () => true, gone: new AbortController().signal };
const outside = { authenticated: () => false, gone: new AbortController().signal };
const texts = (): string[] => brought.map(({ text }) => text).sort();

test('key exchanges of clients that come at once each have a turn of the event loop', async () => {
  const turns = new HandshakeTurns();
  for (const socket of accepted) turns.pace(socket, outside);
  for (const [i, client] of clients.entries()) client.write(`${i}`);
  await expect.poll(() => texts()).toEqual([...'0123456789']);
  expect(new Set(brought.map((each) => each.turn)).size).toBe(10);
});

test('what comes after the login waits for nobody, but never overtakes what came before', async () => {
  const turns = new HandshakeTurns();
  let authenticated = false;
  const [first, second, ...others] = accepted;
  for (const socket of others) turns.pace(socket, outside);
  if (first !== undefined) turns.pace(first, inside);
  if (second !== undefined) turns.pace(second, { ...outside, authenticated: () => authenticated });
  for (const socket of others) socket.emit('data', Buffer.from('o'));
  second?.emit('data', Buffer.from('a'));
  authenticated = true;
  second?.emit('data', Buffer.from('b'));
  first?.emit('data', Buffer.from('f'));
  expect(texts()).toEqual(['f']);
  await expect.poll(() => brought.length).toBe(11);
  expect(brought.slice(-2).map(({ text }) => text)).toEqual(['a', 'b']);
  second?.emit('data', Buffer.from('c'));
  expect(brought.at(-1)?.text).toBe('c');
});

test('what a connection has brought is dropped when it ends before its turn, and the others go on', async () => {
  const turns = new HandshakeTurns();
  const ends = new AbortController();
  for (const socket of accepted) turns.pace(socket, socket === accepted[3] ? { ...outside, gone: ends.signal } : outside);
  for (const [i, socket] of accepted.entries()) socket.emit('data', Buffer.from(`${i}`));
  ends.abort();
  await expect.poll(() => texts()).toEqual([...'012456789']);
});
