import { connect, type Socket } from 'node:net';
import path from 'node:path';
import ssh2 from 'ssh2';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { GitServer, GitStream } from '#shared/git/git-storage.ts';
import { limits } from '#shared/limits.ts';
import { RawSshClient } from '#sshd/testing/raw-ssh-client.ts';
import { createGitServer, newPrincipal, openTestSshServer, type TestSshServer } from '#sshd/testing/test-ssh-server.ts';
import { gitSshEnv, makeKey, makeWorkTree, run, ssh } from '#test/support/ssh/ssh-client.ts';

const ada = newPrincipal('ada@example.com');
const adasKey = newKey();
let server: TestSshServer;
const sockets: Socket[] = [];

function newKey(): ssh2.ParsedKey {
  const key = ssh2.utils.parseKey(ssh2.utils.generateKeyPairSync('ed25519').private);
  if (key instanceof Error) throw key;
  return key;
}

async function openServer(changes: Parameters<typeof openTestSshServer>[0]): Promise<void> {
  server = await openTestSshServer(changes);
  server.addKey(`${adasKey.type} ${adasKey.getPublicSSH().toString('base64')}`, ada);
  await server.addApp('hello', ada);
}

/** A git server that runs `serve` for every command. */
function serving(serve: (stream: GitStream) => Promise<number>): GitServer {
  return createGitServer((_repository, stream) => serve(stream));
}

/** Connects and sends `text` a byte at a time, for as long as the connection lasts. */
function trickle(text: string, everyMilliseconds = 20): { socket: Socket; closed: Promise<void>; received(): string } {
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  let sent = 0;
  let received = '';
  const timer = setInterval(() => {
    if (socket.writable && sent < text.length) socket.write(text.charAt(sent));
    sent += 1;
  }, everyMilliseconds);
  socket.on('error', () => {});
  socket.on('data', (data) => {
    received += data.toString('latin1');
  });
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      clearInterval(timer);
      resolve();
    });
  });
  return { socket, closed, received: () => received };
}

async function logInAndRun(service: string): Promise<RawSshClient> {
  const client = await RawSshClient.logIn(server.port, adasKey);
  client.protocol.exec(await client.openSession(0), `${service} 'hello.git'`, true);
  await client.next('CHANNEL_SUCCESS');
  return client;
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

describe('login', () => {
  test('a client that has not logged in after the grace period is disconnected, however far it is; one that has logged in stays', async () => {
    await openServer({ limits: { loginGraceSeconds: 1 } });
    const client = await RawSshClient.logIn(server.port, adasKey);
    const started = Date.now();
    const halfWay = await RawSshClient.connect(server.port);
    await Promise.all([
      trickle('').closed,
      trickle('SSH-2.0-slow and slower and slower and slower and slower and slower').closed,
      halfWay.closed,
    ]);
    expect(Date.now() - started).toBeGreaterThan(900);
    client.protocol.shell(await client.openSession(0), true);
    expect((await client.waitForEnd()).status).toBe(0);
    client.end();
  });

  test('a real push succeeds while a thousand clients at the same address send a byte at a time', async () => {
    await openServer({ limits: { slowFromPoints: limits.ssh.slowFromPoints, refuseFromPoints: limits.ssh.refuseFromPoints } });
    const key = await makeKey(server.directory, 'ada', 'ed25519');
    server.addKey(key.publicKey, ada);
    const tree = path.join(server.directory, 'tree');
    await makeWorkTree(tree, { 'readme.txt': 'hello' });
    const attackers = Array.from({ length: 1000 }, () => trickle('SSH-2.0-slowly '.padEnd(200, 'x'), 200));
    await vi.waitFor(
      () => expect(attackers.filter(({ received }) => received().startsWith('SSH-2.0-paas')).length).toBeGreaterThanOrEqual(100),
      { timeout: 15_000 },
    );
    const pushed = await run('git', ['push', `ssh://git@127.0.0.1:${server.port}/hello.git`, 'main'], {
      cwd: tree,
      env: gitSshEnv(server.port, key),
    });
    expect(pushed.status, pushed.stderr).toBe(0);
    await vi.waitFor(
      () => expect(attackers.filter(({ socket }) => socket.readyState === 'open').length).toBeLessThanOrEqual(100),
      {
        timeout: 10_000,
      },
    );
  });

  test('a source with many failed logins is answered with a delay, then refused with a message; the failures expire', async () => {
    await openServer({ limits: { slowFromPoints: 5, refuseFromPoints: 18 } });
    /** Milliseconds until the answer. */
    const attempt = async (): Promise<number> => {
      const client = await RawSshClient.connect(server.port);
      const started = performance.now();
      client.signIn('git', newKey());
      await client.next('USERAUTH_FAILURE');
      client.end();
      return performance.now() - started;
    };
    /** What the server sends first. */
    const greeting = async (): Promise<string> => {
      const { socket, received } = trickle('');
      await vi.waitFor(() => expect(received()).toContain('\r\n'), { timeout: 10_000, interval: 5 });
      socket.destroy();
      return received();
    };
    const answers: number[] = [];
    let first = await greeting();
    for (let i = 0; i < 20 && first === 'SSH-2.0-paas\r\n'; i += 1) {
      // Refused when the penalty of the previous attempt was added after the greeting.
      answers.push(await attempt().catch(() => 0));
      first = await greeting();
    }
    expect(first).toMatch(/^Too many failed logins from your address\. Try again in \d s\.\r\n$/);
    expect(Math.max(...answers)).toBeGreaterThan(300);
    await vi.waitFor(async () => (await RawSshClient.logIn(server.port, adasKey)).end(), { timeout: 10_000, interval: 250 });
  });

  test('connections beyond the limit are refused with a message', async () => {
    await openServer({ limits: { connections: 3 } });
    const clients = await Promise.all([1, 2, 3].map(() => RawSshClient.logIn(server.port, adasKey)));
    const { closed, received } = trickle('');
    await closed;
    expect(received()).toBe('Too many connections. Try again in a minute.\r\n');
    for (const client of clients) client.end();
  });
});

describe('an idle client', () => {
  test('that has logged in and requests nothing is disconnected', async () => {
    await openServer({ limits: { idleSeconds: 0.3 } });
    const client = await RawSshClient.logIn(server.port, adasKey);
    await expect(client.closed).resolves.toBeUndefined();
  });

  test('that does not send the input its command waits for is disconnected, and the command is notified', async () => {
    const read = serving(async ({ input, clientGone }) => {
      for await (const _chunk of input);
      return clientGone.aborted ? 1 : 0;
    });
    await openServer({ limits: { idleSeconds: 1 }, git: read });
    const client = await logInAndRun('git-receive-pack');
    await client.closed;
    await expect.poll(() => server.logLines.join('\n')).toContain('"status":1,"client_gone":true');
  });

  test('that waits for a long command stays connected', async () => {
    const slow = serving(async ({ write }) => {
      await new Promise((resolve) => setTimeout(resolve, 2500));
      await write(Buffer.from('done'));
      return 0;
    });
    await openServer({ limits: { idleSeconds: 1 }, git: slow });
    const client = await logInAndRun('git-upload-pack');
    expect((await client.waitForEnd()).status).toBe(0);
    client.end();
  });

  test('that has disappeared from the network is detected by unanswered keepalives, and the command is notified', async () => {
    const gone = Promise.withResolvers<void>();
    const wait = serving(async ({ clientGone }) => {
      clientGone.addEventListener('abort', () => gone.resolve());
      await gone.promise;
      return 1;
    });
    await openServer({ limits: { keepaliveSeconds: 0.1, keepaliveMisses: 2 }, git: wait });
    const client = await logInAndRun('git-upload-pack');
    client.socket.pause();
    await expect(gone.promise).resolves.toBeUndefined();
    client.end();
  });
});

describe('a client that disconnects', () => {
  test('does not end its command, which is notified', async () => {
    const finished = Promise.withResolvers<string>();
    const build = serving(async ({ clientGone, write }) => {
      await new Promise((resolve) => clientGone.addEventListener('abort', resolve));
      await write(Buffer.from('nobody reads this'));
      finished.resolve('built to the end');
      return 0;
    });
    await openServer({ git: build });
    const client = await logInAndRun('git-receive-pack');
    client.end();
    expect(await finished.promise).toBe('built to the end');
  });

  test('from its input only still reads the output', async () => {
    const answer = serving(async ({ input, write }) => {
      let bytes = 0;
      for await (const chunk of input) bytes += chunk.length;
      await write(Buffer.from(`${bytes} bytes`));
      return 0;
    });
    await openServer({ git: answer });
    const key = await makeKey(server.directory, 'ada', 'ed25519');
    server.addKey(key.publicKey, ada);
    const ran = await run(
      'ssh',
      [
        '-F',
        'none',
        '-p',
        String(server.port),
        '-i',
        key.file,
        '-o',
        'IdentityAgent=none',
        '-o',
        'StrictHostKeyChecking=no',
        '-o',
        'UserKnownHostsFile=/dev/null',
        'git@127.0.0.1',
        "git-receive-pack 'hello.git'",
      ],
      { input: 'x'.repeat(100_000) },
    );
    expect(ran).toMatchObject({ status: 0, stdout: '100000 bytes' });
  });
});

describe('close', () => {
  test('lets a running command end, accepts no new connection, and disconnects idle clients', async () => {
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const wait = serving(async ({ write }) => {
      started.resolve();
      await gate.promise;
      await write(Buffer.from('done'));
      return 0;
    });
    await openServer({ git: wait });
    const idle = await RawSshClient.logIn(server.port, adasKey);
    const stranger = await RawSshClient.connect(server.port);
    const client = await logInAndRun('git-upload-pack');
    await started.promise;
    const closing = server.server.close(10_000);
    await Promise.all([idle.closed, stranger.closed]);
    await expect(RawSshClient.connect(server.port)).rejects.toThrow();
    gate.resolve();
    expect((await client.waitForEnd()).status).toBe(0);
    (client.protocol as unknown as { channelClose(id: number): void }).channelClose(0);
    await closing;
  });

  test('ends commands that are still running after the grace period', async () => {
    const gone = Promise.withResolvers<void>();
    const stuck = serving(async ({ clientGone }) => {
      clientGone.addEventListener('abort', () => gone.resolve());
      await gone.promise;
      return 1;
    });
    await openServer({ git: stuck });
    const client = await logInAndRun('git-upload-pack');
    await server.server.close(100);
    await expect(gone.promise).resolves.toBeUndefined();
    await expect(client.closed).resolves.toBeUndefined();
  });
});

test('listen rejects when the port is taken', async () => {
  await openServer({});
  const other = await openTestSshServer();
  await other.close();
  await expect(other.server.listen(server.port, '127.0.0.1')).rejects.toThrow('EADDRINUSE');
});

test('twenty people who log in at the same time all succeed', async () => {
  await openServer({});
  const key = await makeKey(server.directory, 'ada', 'ed25519');
  server.addKey(key.publicKey, ada);
  const all = await Promise.all(Array.from({ length: 20 }, () => ssh(server.port, key, ['git@127.0.0.1'])));
  expect(all.filter(({ status }) => status === 0)).toHaveLength(20);
});
