import ssh2 from 'ssh2';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { newKey, publicKeyOf } from '#sshd/testing/keys.ts';
import { RawSshClient } from '#sshd/testing/raw-ssh-client.ts';
import { createGitServer, newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';

const ada = newPrincipal('ada@example.com');

const adasPrivateKey = ssh2.utils.generateKeyPairSync('ed25519').private;
const adasKey = newKey(adasPrivateKey);

let server: TestSshServer;

async function openServer(changes: Parameters<typeof openTestSshServer>[0] = {}): Promise<void> {
  server = await openTestSshServer(changes);
  server.addKey(publicKeyOf(adasKey), ada);
}

/** Waits until the count has not changed for a while. */
async function settled(count: () => number): Promise<void> {
  let before: number | undefined;
  await vi.waitFor(
    () => {
      const now = count();
      const moved = now !== before;
      before = now;
      expect(moved).toBe(false);
    },
    { interval: 400, timeout: 10_000 },
  );
}

afterEach(async () => {
  await server.close();
});

describe('flow control', () => {
  const mebibyte = 1024 * 1024;

  test('a client can send no more than the window while nobody reads its input, and all of it once somebody does', async () => {
    const gate = Promise.withResolvers<void>();
    let received = 0;
    const read = async (_repository: unknown, stream: { input: AsyncIterable<Uint8Array> }): Promise<number> => {
      await gate.promise;
      for await (const chunk of stream.input) received += chunk.length;
      return 0;
    };
    await openServer({ git: createGitServer(read) });
    await server.addApp('hello', ada);
    const client = new ssh2.Client().connect({
      port: server.port,
      host: '127.0.0.1',
      username: 'git',
      privateKey: adasPrivateKey,
    });
    await new Promise((resolve, reject) => void client.on('ready', () => resolve(undefined)).on('error', reject));
    const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec("git-receive-pack 'hello.git'", (error, opened) => (error === undefined ? resolve(opened) : reject(error)));
    });
    let taken = 0;
    const pump = async (): Promise<void> => {
      for (let i = 0; i < 64; i += 1) {
        await new Promise<void>((resolve) => void channel.write(Buffer.alloc(mebibyte), () => resolve()));
        taken += 1;
      }
      channel.end();
    };
    const pumping = pump();
    await expect.poll(() => taken).toBeGreaterThan(0);
    await settled(() => taken);
    expect(taken).toBeLessThanOrEqual(6);
    gate.resolve();
    await pumping;
    await vi.waitFor(() => expect(received).toBe(64 * mebibyte), { timeout: 10_000 });
    client.end();
  });

  test.each<[string, (client: RawSshClient) => void]>([
    ['does not read its socket', (client) => client.socket.pause()],
    ['has started a key exchange and does not continue it', (client) => client.beginKeyExchangeOnly()],
  ])('writing waits while the client %s, although it granted a window of 4 GiB', async (_what, stall) => {
    let written = 0;
    const gate = Promise.withResolvers<void>();
    const write = async (
      _repository: unknown,
      stream: { write(chunk: Uint8Array): Promise<void>; clientGone: AbortSignal },
    ): Promise<number> => {
      await gate.promise;
      for (; !stream.clientGone.aborted && written < 256; written += 1) await stream.write(Buffer.alloc(mebibyte));
      return 0;
    };
    await openServer({ git: createGitServer(write) });
    await server.addApp('hello', ada);
    const client = await RawSshClient.logIn(server.port, adasKey);
    const channel = await client.openSession(0, 2 ** 32 - 1);
    client.protocol.exec(channel, "git-upload-pack 'hello.git'", true);
    await client.next('CHANNEL_SUCCESS');
    const bytesRead = client.socket.bytesRead;
    stall(client);
    // The server must have noticed: it answers a key exchange; a paused socket needs nothing.
    if (!client.socket.isPaused()) await expect.poll(() => client.socket.bytesRead).toBeGreaterThan(bytesRead);
    gate.resolve();
    await settled(() => written);
    expect(written).toBeLessThan(32);
    client.end();
    await vi.waitFor(() => expect(server.logLines.some((line) => line.includes('"client_gone":true'))).toBe(true), {
      timeout: 10_000,
    });
  });

  test('a client that ignores the window is disconnected', async () => {
    const wait = (_repository: unknown, stream: { clientGone: AbortSignal }): Promise<number> =>
      new Promise((resolve) => stream.clientGone.addEventListener('abort', () => resolve(1)));
    await openServer({ git: createGitServer(wait) });
    await server.addApp('hello', ada);
    const client = await RawSshClient.logIn(server.port, adasKey);
    const channel = await client.openSession(0);
    client.protocol.exec(channel, "git-receive-pack 'hello.git'", true);
    await client.next('CHANNEL_SUCCESS');
    // No divisor of the window, so that it is exceeded and not met exactly.
    for (let i = 0; i < 1000; i += 1) client.protocol.channelData(channel, Buffer.alloc(30_001));
    await client.closed;
    expect(server.logLines.some((line) => line.includes('more data than the window allows'))).toBe(true);
  });

  test('a client that starts a key exchange and then sends something else is disconnected', async () => {
    await openServer();
    const client = await RawSshClient.logIn(server.port, adasKey);
    client.beginKeyExchangeOnly();
    client.protocol.ping();
    await expect(client.closed).resolves.toBeUndefined();
  });

  test('a client that sends too much data before the login is disconnected', async () => {
    await openServer();
    const client = await RawSshClient.connect(server.port);
    // An offered key costs no attempt, because it is not looked up.
    const noise = setInterval(() => {
      for (let i = 0; i < 200 && client.socket.writable; i += 1) client.protocol.authPK('git', adasKey);
    }, 1);
    await client.closed;
    clearInterval(noise);
    expect(server.logLines.some((line) => line.includes('too much data before login'))).toBe(true);
  });
});
