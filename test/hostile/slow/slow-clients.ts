import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import { encodePacket, flushPacket } from '#shared/git/protocol/pkt-line.ts';

/** Whom slow clients come to. */
export interface SlowTarget {
  httpPort: number;
  sshPort: number;
  /** Connections are shared out among them. */
  people: readonly SlowPerson[];
}

export interface SlowPerson {
  token: string;
  privateKey: string;
  /** One they may push to. */
  app: string;
}

/** First those who have to get in themselves. */
export const slowKinds = [
  'in a pack (SSH)',
  'in its name (SSH)',
  'in a key exchange (SSH)',
  'in a header (HTTP)',
  'in the body of a push (HTTP)',
] as const;
export type SlowKind = (typeof slowKinds)[number];

/** Connections that send a byte at a time, for as long as they are let. */
export class SlowCrowd {
  readonly #target: SlowTarget;
  readonly #open = new Map<SlowKind, Set<Socket | ssh2.Client>>();
  readonly #timers = new Set<NodeJS.Timeout>();

  constructor(target: SlowTarget) {
    this.#target = target;
  }

  /** Those that the other side has not closed. */
  count(kind: SlowKind): number {
    return this.#open.get(kind)?.size ?? 0;
  }

  /** @param everyMilliseconds between two bytes of one connection */
  async send(kind: SlowKind, count: number, everyMilliseconds: number): Promise<void> {
    const greeting = kind === 'in a key exchange (SSH)' ? await recordKeyExchange() : Buffer.alloc(0);
    const connectOne = async (i: number): Promise<void> => {
      const person = this.#target.people[i % this.#target.people.length];
      if (person === undefined) throw new Error('nobody to come as');
      if (kind === 'in a pack (SSH)') return await this.#beginPush(kind, person, everyMilliseconds);
      const { at, slowly } = this.#words(kind, person, greeting);
      const socket = connect(kind.endsWith('(SSH)') ? this.#target.sshPort : this.#target.httpPort, '127.0.0.1');
      this.#keep(kind, socket);
      socket.resume();
      socket.write(at);
      this.#trickle(slowly, everyMilliseconds, (byte) => socket.writable && socket.write(byte));
    };
    // A few at a time: logging in is real work, and not what is slow here.
    for (let i = 0; i < count; i += 10)
      await Promise.all(Array.from({ length: Math.min(10, count - i) }, (_, j) => connectOne(i + j)));
  }

  /** Resolves when all of them are closed. */
  async end(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    const connections = [...this.#open.values()].flatMap((each) => [...each]);
    const closed = connections.map((connection) => once(connection as NodeJS.EventEmitter, 'close'));
    for (const connection of connections) connection.destroy();
    await Promise.all(closed);
  }

  #keep(kind: SlowKind, connection: Socket | ssh2.Client): void {
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

  /** What is said at once, and what after it byte by byte. */
  #words(kind: SlowKind, { token, app }: SlowPerson, keyExchange: Buffer): { at: Buffer; slowly: Buffer } {
    const host = `localhost:${this.#target.httpPort}`;
    if (kind === 'in its name (SSH)') return { at: Buffer.alloc(0), slowly: Buffer.from('SSH-2.0-slow'.padEnd(250, '.')) };
    if (kind === 'in a key exchange (SSH)') {
      const name = keyExchange.indexOf('\n') + 1;
      return { at: keyExchange.subarray(0, name), slowly: keyExchange.subarray(name, -1) };
    }
    if (kind === 'in a header (HTTP)')
      return { at: Buffer.from('GET / HTTP/1.1\r\n'), slowly: Buffer.from(`Host: ${host}\r\nX-Slow: ${'x'.repeat(10_000)}`) };
    const head = [
      `POST /${app}.git/git-receive-pack HTTP/1.1`,
      `Host: ${host}`,
      `Authorization: Basic ${btoa(`git:${token}`)}`,
      'Content-Type: application/x-git-receive-pack-request',
      `Content-Length: ${pushBeginning.length + fillerBytes + 20}`,
    ];
    return { at: Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), pushBeginning]), slowly: filler };
  }

  async #beginPush(kind: SlowKind, { privateKey, app }: SlowPerson, everyMilliseconds: number): Promise<void> {
    const client = new ssh2.Client();
    this.#keep(kind, client);
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

/** A command, and a pack up to where the content of a blob begins, stored without compression. */
const pushBeginning = Buffer.concat([
  encodePacket(`${'0'.repeat(40)} ${'1'.repeat(40)} refs/tags/slow\0report-status`),
  flushPacket,
  Buffer.from('PACK\0\0\0\x02\0\0\x03\xe8', 'latin1'),
  Buffer.of(0xbf, 0xff, 0x1f, 0x78, 0x01, 0x00, 0xff, 0xff, 0x00, 0x00),
]);

/** What an honest client says up to the end of its first packet, taken down by a server that only listens. */
async function recordKeyExchange(): Promise<Buffer> {
  const heard: Buffer[] = [];
  const listener: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => heard.push(chunk));
    socket.write('SSH-2.0-listener\r\n');
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const { port } = listener.address() as { port: number };
  const client = new ssh2.Client().on('error', () => undefined);
  client.connect({ host: '127.0.0.1', port, username: 'git', password: 'none' });
  const whole = (): boolean => {
    const all = Buffer.concat(heard);
    const start = all.indexOf('\n') + 1;
    return start > 0 && all.length >= start + 4 && all.length >= start + 4 + all.readUInt32BE(start);
  };
  while (!whole()) await new Promise((resolve) => setImmediate(resolve));
  client.destroy();
  listener.close();
  return Buffer.concat(heard);
}
