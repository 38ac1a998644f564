/** Canaries: they fail when an upgrade of ssh2 changes what internals.ts relies on. docs/private-internals.md says what to do then. */
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { afterEach, describe, expect, test } from 'vitest';
import { newKey } from '#sshd/testing/keys.ts';
import { RawSshClient } from '#sshd/testing/raw-ssh-client.ts';
import { connectionFailure, interceptInput, isExchangingKeys, maxPacketBytes } from './internals.ts';

const { version } = createRequire(import.meta.url)('ssh2/package.json') as { version: string };
const broken = (what: string): string => `ssh2 ${version} ${what}: adapt sshd/ssh2/internals.ts (docs/private-internals.md)`;

const hostKey = { key: newKey() };
const closings: (() => void)[] = [];
afterEach(() => {
  for (const close of closings.splice(0)) close();
});

/** The first connection of a plain ssh2 server, which accepts every login. */
async function accept(config: Partial<ssh2.ServerConfig> = {}): Promise<{
  readonly port: number;
  readonly arrived: Promise<{ readonly client: ssh2.Connection; readonly socket: Socket }>;
}> {
  const arrived = Promise.withResolvers<{ client: ssh2.Connection; socket: Socket }>();
  const listener = createServer((socket) => {
    const server = new ssh2.Server({ hostKeys: [hostKey], ...config }, (client) => {
      client.on('authentication', (context) => context.accept());
      client.on('error', () => undefined);
      arrived.resolve({ client, socket });
    });
    server.injectSocket(socket);
    closings.push(() => socket.destroy());
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  closings.push(() => listener.close());
  return { port: (listener.address() as AddressInfo).port, arrived: arrived.promise };
}

test('isExchangingKeys is true from the start of a key exchange to its end', async () => {
  const { port, arrived } = await accept();
  const loggedIn = RawSshClient.logIn(port, newKey());
  const { client } = await arrived;
  await once(client, 'ready');
  expect(isExchangingKeys(client), broken('no longer clears _protocol._kexinit after a key exchange')).toBe(false);
  client.rekey();
  expect(isExchangingKeys(client), broken('no longer sets _protocol._kexinit during a key exchange')).toBe(true);
  await once(client, 'rekey');
  expect(isExchangingKeys(client), broken('no longer clears _protocol._kexinit before the event "rekey"')).toBe(false);
  (await loggedIn).end();
});

test('maxPacketBytes is the packet size that the client sent', async () => {
  const { port, arrived } = await accept();
  const client = await RawSshClient.logIn(port, newKey());
  const channel = new Promise<ssh2.ServerChannel>((resolve) => {
    void arrived.then((server) =>
      server.client.on('session', (acceptSession) => {
        const session = acceptSession() as unknown as ssh2.Session;
        session.on('shell', (acceptShell) => resolve(acceptShell()));
      }),
    );
  });
  client.protocol.shell(await client.openSession(0, 2 ** 21, 1234), false);
  expect(maxPacketBytes(await channel), broken('no longer keeps the packet size in channel.outgoing')).toBe(1234);
  client.end();
});

test('interceptInput takes over all input, and a login succeeds through it', async () => {
  const { port, arrived } = await accept();
  const loggedIn = RawSshClient.logIn(port, newKey());
  const { client, socket } = await arrived;
  expect(socket.listenerCount('data'), broken('no longer reads its socket by one listener of "data"')).toBe(1);
  const passOn = interceptInput(socket);
  let bytes = 0;
  socket.on('data', (data: Buffer) => {
    bytes += data.length;
    setImmediate(() => passOn(data));
  });
  await once(client, 'ready');
  expect(bytes, broken('reads its socket by other means than listeners of "data"')).toBeGreaterThan(0);
  (await loggedIn).end();
});

describe('connectionFailure', () => {
  const failureOf = async ({ client }: { client: ssh2.Connection }): Promise<string> => {
    const [error] = (await once(client, 'failed')) as [Error];
    return connectionFailure(error);
  };
  const forward = (client: ssh2.Connection): void => {
    client.on('error', (error: Error) => (client as unknown as NodeJS.EventEmitter).emit('failed', error));
  };

  test('recognizes a client that breaks the protocol', async () => {
    const { port, arrived } = await accept();
    const raw = await RawSshClient.logIn(port, newKey());
    const server = await arrived;
    forward(server.client);
    const failure = failureOf(server);
    raw.sendMalformedMessage();
    expect(await failure, broken('no longer marks protocol errors with the level "protocol"')).toBe('protocol-violation');
  });

  test('recognizes a client that does not answer keepalives', async () => {
    const { port, arrived } = await accept({ keepaliveInterval: 50, keepaliveCountMax: 1 });
    const raw = await RawSshClient.logIn(port, newKey());
    const server = await arrived;
    forward(server.client);
    const failure = failureOf(server);
    raw.socket.pause();
    expect(await failure, broken('no longer marks unanswered keepalives with the level "client-timeout"')).toBe('no-keepalive');
  });

  test('calls any other error "other"', () => {
    expect(connectionFailure(new Error('read ECONNRESET'))).toBe('other');
  });
});
