import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';

/** The platform that slow clients connect to. */
export interface SlowTarget {
  httpPort: number;
  sshPort: number;
  /** The users whose credentials the connections share evenly. */
  users: readonly SlowUser[];
}

/** The credentials of a slow client. */
export interface SlowUser {
  token: string;
  privateKey: string;
  /** An app that the user may push to. */
  app: string;
}

/** What slow clients send slowly. Those that must log in first come first. */
export const slowKinds = [
  'pack (SSH)',
  'identification (SSH)',
  'key exchange (SSH)',
  'header (HTTP)',
  'push body (HTTP)',
] as const;
export type SlowKind = (typeof slowKinds)[number];

/** Clients that send a byte at a time until the server closes the connection. */
export class SlowClients {
  readonly #target: SlowTarget;
  readonly #open = new Map<SlowKind, Set<Socket | ssh2.Client>>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(target: SlowTarget) {
    this.#target = target;
  }

  /** Connections of the kind that the server has not closed. */
  count(kind: SlowKind): number {
    return this.#open.get(kind)?.size ?? 0;
  }

  /** Opens `count` connections of the kind. @param everyMilliseconds between two bytes of one connection */
  async open(kind: SlowKind, count: number, everyMilliseconds: number): Promise<void> {
    const keyExchange = kind === 'key exchange (SSH)' ? await recordKeyExchange() : Buffer.alloc(0);
    const connectOne = async (i: number): Promise<void> => {
      const user = this.#target.users[i % this.#target.users.length];
      if (user === undefined) throw new Error('There must be at least one user.');
      if (kind === 'pack (SSH)') return await this.#beginPush(kind, user, everyMilliseconds);
      const { first, slowly } = this.#bytes(kind, user, keyExchange);
      const socket = connect(kind.endsWith('(SSH)') ? this.#target.sshPort : this.#target.httpPort, '127.0.0.1');
      this.#track(kind, socket);
      socket.resume();
      socket.write(first);
      this.#trickle(slowly, everyMilliseconds, (byte) => socket.writable && socket.write(byte));
    };
    // A few at a time: a login takes CPU time, and is not what this tests.
    for (let i = 0; i < count; i += 10)
      await Promise.all(Array.from({ length: Math.min(10, count - i) }, (_, j) => connectOne(i + j)));
  }

  /** Closes all connections. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const connections = [...this.#open.values()].flatMap((each) => [...each]);
    const closed = connections.map((connection) => once(connection as NodeJS.EventEmitter, 'close'));
    for (const connection of connections) connection.destroy();
    await Promise.all(closed);
  }

  #track(kind: SlowKind, connection: Socket | ssh2.Client): void {
    const connections = this.#open.get(kind) ?? new Set();
    this.#open.set(kind, connections.add(connection));
    const emitter: NodeJS.EventEmitter = connection;
    emitter.on('error', () => undefined);
    emitter.on('close', () => connections.delete(connection));
  }

  #trickle(bytes: Buffer, everyMilliseconds: number, write: (byte: Buffer) => void): void {
    let sent = 0;
    const timer = setInterval(() => {
      if (sent < bytes.length) write(bytes.subarray(sent, ++sent));
    }, everyMilliseconds);
    this.#timers.add(timer);
  }

  /** What a client sends at once, and what it then sends byte by byte. */
  #bytes(kind: SlowKind, { token, app }: SlowUser, keyExchange: Buffer): { first: Buffer; slowly: Buffer } {
    const host = `localhost:${this.#target.httpPort}`;
    if (kind === 'identification (SSH)') return { first: Buffer.alloc(0), slowly: Buffer.from('SSH-2.0-slow'.padEnd(250, '.')) };
    if (kind === 'key exchange (SSH)') {
      const name = keyExchange.indexOf('\n') + 1;
      return { first: keyExchange.subarray(0, name), slowly: keyExchange.subarray(name, -1) };
    }
    if (kind === 'header (HTTP)')
      return { first: Buffer.from('GET / HTTP/1.1\r\n'), slowly: Buffer.from(`Host: ${host}\r\nX-Slow: ${'x'.repeat(10_000)}`) };
    const head = [
      `POST /${app}.git/git-receive-pack HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Basic ${btoa(`git:${token}`)}`,
      'Content-Type: application/x-git-receive-pack-request',
      `Content-Length: ${pushBeginning.length + fillerBytes + 20}`,
    ];
    return { first: Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), pushBeginning]), slowly: filler };
  }

  async #beginPush(kind: SlowKind, { privateKey, app }: SlowUser, everyMilliseconds: number): Promise<void> {
    const client = new ssh2.Client();
    this.#track(kind, client);
    client.connect({ host: '127.0.0.1', port: this.#target.sshPort, username: 'git', privateKey, readyTimeout: 120_000 });
    await once(client, 'ready');
    const channel = await new Promise<ssh2.ClientChannel>((resolve, reject) => {
      client.exec(`git-receive-pack '${app}.git'`, (error, opened) => (error === undefined ? resolve(opened) : reject(error)));
    });
    channel.resume();
    channel.write(pushBeginning);
    this.#trickle(filler, everyMilliseconds, (byte) => channel.writable && channel.write(byte));
  }
}

const fillerBytes = 65_535;
const filler = Buffer.alloc(fillerBytes, 'a');

/** A push command, and a pack up to the content of a blob that is stored without compression. */
const pushBeginning = Buffer.concat([
  encodePacket(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/tags/slow\0report-status`),
  flushPacket,
  Buffer.from('PACK\0\0\0\x02\0\0\x03\xe8', 'latin1'),
  Buffer.of(0xbf, 0xff, 0x1f, 0x78, 0x01, 0x00, 0xff, 0xff, 0x00, 0x00),
]);

/** What an ordinary client sends up to the end of its first packet, recorded by a server that only listens. */
async function recordKeyExchange(): Promise<Buffer> {
  const received: Buffer[] = [];
  const listener: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.write('SSH-2.0-listener\r\n');
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as { port: number };
  const client = new ssh2.Client().on('error', () => undefined);
  client.connect({ host: '127.0.0.1', port, username: 'git', password: 'none' });
  const whole = (): boolean => {
    const all = Buffer.concat(received);
    const start = all.indexOf('\n') + 1;
    return start > 0 && all.length >= start + 4 && all.length >= start + 4 + all.readUInt32BE(start);
  };
  while (!whole()) await new Promise((resolve) => setImmediate(resolve));
  client.destroy();
  listener.close();
  return Buffer.concat(received);
}
