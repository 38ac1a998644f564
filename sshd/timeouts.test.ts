import { connect, type Socket } from 'node:net';
import path from 'node:path';
import ssh2 from 'ssh2';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { GitServer, GitStream } from '#shared/git/git-storage.ts';
import { limits } from '#shared/limits.ts';
import { RawSshClient } from '#test/support/ssh/raw-ssh-client.ts';
import { gitSshEnv, makeKey, makeWorkTree, run, ssh } from '#test/support/ssh/ssh-client.ts';
import { openTestSshServer, servedBy, somebody, type TestSshServer } from '#test/support/ssh/test-ssh-server.ts';

const ada = somebody('ada@example.com');
const adasKey = newKey();
let door: TestSshServer;
const sockets: Socket[] = [];

function newKey(): ssh2.ParsedKey {
  const key = ssh2.utils.parseKey(ssh2.utils.generateKeyPairSync('ed25519').private);
  if (key instanceof Error) throw key;
  return key;
}

async function openDoor(changes: Parameters<typeof openTestSshServer>[0]): Promise<void> {
  door = await openTestSshServer(changes);
  door.addKey(`${adasKey.type} ${adasKey.getPublicSSH().toString('base64')}`, ada);
  await door.addApp('hello', ada);
}

/** A git server whose every command is `serve`. */
function serving(serve: (stream: GitStream) => Promise<number>): GitServer {
  return servedBy((_repository, stream) => serve(stream));
}

/** Connects and sends `text` a byte at a time, for as long as the connection lasts. */
function trickle(text: string, everyMilliseconds = 20): { socket: Socket; closed: Promise<void>; received(): string } {
  const socket = connect(door.port, '127.0.0.1');
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
  const client = await RawSshClient.logIn(door.port, adasKey);
  client.protocol.exec(await client.openSession(0), `${service} 'hello.git'`, true);
  await client.next('CHANNEL_SUCCESS');
  return client;
}

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await door.close();
});

describe('login', () => {
  test('who has not logged in when the grace is over is cut off: silent, trickling and half way; who has stays', async () => {
    await openDoor({ limits: { loginGraceSeconds: 1 } });
    const client = await RawSshClient.logIn(door.port, adasKey);
    const started = Date.now();
    const halfWay = await RawSshClient.connect(door.port);
    await Promise.all([
      trickle('').closed,
      trickle('SSH-2.0-slow and slower and slower and slower and slower and slower').closed,
      halfWay.closed,
    ]);
    expect(Date.now() - started).toBeGreaterThan(900);
    client.protocol.shell(await client.openSession(0), true);
    expect((await client.ending()).status).toBe(0);
    client.end();
  });

  test('a real push gets in and through while a thousand clients send a byte at a time, from the same address', async () => {
    await openDoor({ limits: { slowFromPoints: limits.ssh.slowFromPoints, refuseFromPoints: limits.ssh.refuseFromPoints } });
    const key = await makeKey(door.directory, 'ada', 'ed25519');
    door.addKey(key.publicKey, ada);
    const tree = path.join(door.directory, 'tree');
    await makeWorkTree(tree, { 'readme.txt': 'hello' });
    const attackers = Array.from({ length: 1000 }, () => trickle('SSH-2.0-slowly '.padEnd(200, 'x'), 200));
    await vi.waitFor(
      () => expect(attackers.filter(({ received }) => received().startsWith('SSH-2.0-paas')).length).toBeGreaterThanOrEqual(100),
      { timeout: 15_000 },
    );
    const pushed = await run('git', ['push', `ssh://git@127.0.0.1:${door.port}/hello.git`, 'main'], {
      cwd: tree,
      env: gitSshEnv(door.port, key),
    });
    expect(pushed.status, pushed.stderr).toBe(0);
    await vi.waitFor(
      () => expect(attackers.filter(({ socket }) => socket.readyState === 'open').length).toBeLessThanOrEqual(100),
      {
        timeout: 10_000,
      },
    );
  });

  test('who keeps failing is answered late, then turned away with words; the failures are forgotten with time', async () => {
    await openDoor({ limits: { slowFromPoints: 5, refuseFromPoints: 18 } });
    /** Milliseconds until the answer. */
    const attempt = async (): Promise<number> => {
      const client = await RawSshClient.connect(door.port);
      const started = performance.now();
      client.signIn('git', newKey());
      await client.next('USERAUTH_FAILURE');
      client.end();
      return performance.now() - started;
    };
    /** The first thing the door says. */
    const greeting = async (): Promise<string> => {
      const { socket, received } = trickle('');
      await vi.waitFor(() => expect(received()).toContain('\r\n'), { timeout: 10_000, interval: 5 });
      socket.destroy();
      return received();
    };
    const answers: number[] = [];
    let words = await greeting();
    for (let i = 0; i < 20 && words === 'SSH-2.0-paas\r\n'; i += 1) {
      // Refused already when the penalty of the one before came in after the greeting.
      answers.push(await attempt().catch(() => 0));
      words = await greeting();
    }
    expect(words).toMatch(/^Too many failed logins from your address\. Try again in \d s\.\r\n$/);
    expect(Math.max(...answers)).toBeGreaterThan(300);
    await vi.waitFor(async () => (await RawSshClient.logIn(door.port, adasKey)).end(), { timeout: 10_000, interval: 250 });
  });

  test('connections past the cap are turned away with words', async () => {
    await openDoor({ limits: { connections: 3 } });
    const clients = await Promise.all([1, 2, 3].map(() => RawSshClient.logIn(door.port, adasKey)));
    const { closed, received } = trickle('');
    await closed;
    expect(received()).toBe('Too many connections. Try again in a minute.\r\n');
    for (const client of clients) client.end();
  });
});

describe('an idle client', () => {
  test('that logged in and asks for nothing is let go', async () => {
    await openDoor({ limits: { idleSeconds: 0.3 } });
    const client = await RawSshClient.logIn(door.port, adasKey);
    await expect(client.closed).resolves.toBeUndefined();
  });

  test('that does not send what the command waits for is let go, and the command learns it', async () => {
    const read = serving(async ({ input, clientGone }) => {
      for await (const _chunk of input);
      return clientGone.aborted ? 1 : 0;
    });
    await openDoor({ limits: { idleSeconds: 1 }, git: read });
    const client = await logInAndRun('git-receive-pack');
    await client.closed;
    await vi.waitFor(() => expect(door.logLines.join('\n')).toContain('"status":1,"client_gone":true'));
  });

  test('that waits for a long command is not let go', async () => {
    const slow = serving(async ({ write }) => {
      await new Promise((resolve) => setTimeout(resolve, 2500));
      await write(Buffer.from('done'));
      return 0;
    });
    await openDoor({ limits: { idleSeconds: 1 }, git: slow });
    const client = await logInAndRun('git-upload-pack');
    expect((await client.ending()).status).toBe(0);
    client.end();
  });

  test('that has vanished from the network is noticed by unanswered keepalives, and the command learns it', async () => {
    const gone = Promise.withResolvers<void>();
    const wait = serving(async ({ clientGone }) => {
      clientGone.addEventListener('abort', () => gone.resolve());
      await gone.promise;
      return 1;
    });
    await openDoor({ limits: { keepaliveSeconds: 0.1, keepaliveMisses: 2 }, git: wait });
    const client = await logInAndRun('git-upload-pack');
    client.socket.pause();
    await expect(gone.promise).resolves.toBeUndefined();
    client.end();
  });
});

describe('a client that hangs up', () => {
  test('does not end the command, which is told', async () => {
    const finished = Promise.withResolvers<string>();
    const build = serving(async ({ clientGone, write }) => {
      await new Promise((resolve) => clientGone.addEventListener('abort', resolve));
      await write(Buffer.from('nobody reads this'));
      finished.resolve('built to the end');
      return 0;
    });
    await openDoor({ git: build });
    const client = await logInAndRun('git-receive-pack');
    client.end();
    expect(await finished.promise).toBe('built to the end');
  });

  test('only its input still reads the answer', async () => {
    const answer = serving(async ({ input, write }) => {
      let bytes = 0;
      for await (const chunk of input) bytes += chunk.length;
      await write(Buffer.from(`${bytes} bytes`));
      return 0;
    });
    await openDoor({ git: answer });
    const key = await makeKey(door.directory, 'ada', 'ed25519');
    door.addKey(key.publicKey, ada);
    const ran = await run(
      'ssh',
      [
        '-F',
        'none',
        '-p',
        String(door.port),
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
  test('lets a running command end, takes no new connection, and lets idle clients go', async () => {
    const gate = Promise.withResolvers<void>();
    const started = Promise.withResolvers<void>();
    const wait = serving(async ({ write }) => {
      started.resolve();
      await gate.promise;
      await write(Buffer.from('done'));
      return 0;
    });
    await openDoor({ git: wait });
    const idle = await RawSshClient.logIn(door.port, adasKey);
    const stranger = await RawSshClient.connect(door.port);
    const client = await logInAndRun('git-upload-pack');
    await started.promise;
    const closing = door.server.close(10_000);
    await Promise.all([idle.closed, stranger.closed]);
    await expect(RawSshClient.connect(door.port)).rejects.toThrow();
    gate.resolve();
    expect((await client.ending()).status).toBe(0);
    (client.protocol as unknown as { channelClose(id: number): void }).channelClose(0);
    await closing;
  });

  test('ends what does not end by itself when the time is over', async () => {
    const gone = Promise.withResolvers<void>();
    const stuck = serving(async ({ clientGone }) => {
      clientGone.addEventListener('abort', () => gone.resolve());
      await gone.promise;
      return 1;
    });
    await openDoor({ git: stuck });
    const client = await logInAndRun('git-upload-pack');
    await door.server.close(100);
    await expect(gone.promise).resolves.toBeUndefined();
    await expect(client.closed).resolves.toBeUndefined();
  });
});

test('a port that is taken is an error of listen', async () => {
  await openDoor({});
  const other = await openTestSshServer();
  await other.close();
  await expect(other.server.listen(door.port, '127.0.0.1')).rejects.toThrow('EADDRINUSE');
});

test('twenty people who log in at the same moment all get in', async () => {
  await openDoor({});
  const key = await makeKey(door.directory, 'ada', 'ed25519');
  door.addKey(key.publicKey, ada);
  const all = await Promise.all(Array.from({ length: 20 }, () => ssh(door.port, key, ['git@127.0.0.1'])));
  expect(all.filter(({ status }) => status === 0)).toHaveLength(20);
});
