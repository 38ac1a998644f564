import { type KeyObject, sign } from 'node:crypto';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { connect, type Socket } from 'node:net';
import type ssh2 from 'ssh2';

/** The part of ssh2's protocol class that a hostile client needs; the class is not part of ssh2's public interface. */
interface Protocol {
  start(): void;
  parse(data: Buffer, start: number, end: number): void;
  cleanup(): void;
  rekey(): void;
  service(name: string): void;
  authNone(user: string): void;
  authPassword(user: string, password: string): void;
  authKeyboard(user: string): void;
  authInfoRes(responses: readonly string[]): void;
  authHostbased(user: string, key: ssh2.ParsedKey, host: string, localUser: string, sign: Signer): void;
  authPK(user: string, key: ssh2.ParsedKey, algorithm?: string | Signer, sign?: Signer): void;
  session(channel: number, window: number, packetSize: number): void;
  env(channel: number, name: string, value: string, wantReply: boolean): void;
  exec(channel: number, command: string, wantReply: boolean): void;
  shell(channel: number, wantReply: boolean): void;
  subsystem(channel: number, name: string, wantReply: boolean): void;
  openssh_agentForward(channel: number, wantReply: boolean): void;
  directTcpip(channel: number, window: number, packetSize: number, options: object): void;
  tcpipForward(address: string, port: number, wantReply: boolean): void;
  channelData(channel: number, data: Buffer): void;
  channelEOF(channel: number): void;
  channelWindowAdjust(channel: number, bytes: number): void;
  ping(): void;
}

type Signer = (data: Buffer, done: (signature: Buffer) => void) => void;

const ProtocolClass = createRequire(import.meta.url)('ssh2/lib/protocol/Protocol.js') as new (config: object) => Protocol;

const messages = [
  'EXT_INFO',
  'SERVICE_ACCEPT',
  'USERAUTH_FAILURE',
  'USERAUTH_SUCCESS',
  'USERAUTH_PK_OK',
  'USERAUTH_INFO_REQUEST',
  'CHANNEL_OPEN_CONFIRMATION',
  'CHANNEL_OPEN_FAILURE',
  'CHANNEL_SUCCESS',
  'CHANNEL_FAILURE',
  'CHANNEL_DATA',
  'CHANNEL_EXTENDED_DATA',
  'CHANNEL_EOF',
  'CHANNEL_CLOSE',
  'CHANNEL_REQUEST',
  'CHANNEL_WINDOW_ADJUST',
  'REQUEST_SUCCESS',
  'REQUEST_FAILURE',
  'DISCONNECT',
  'GLOBAL_REQUEST',
] as const;
type Message = (typeof messages)[number];

interface Received {
  readonly message: Message;
  readonly args: readonly unknown[];
}

/** A client that sends any message at any time, and records the messages it receives. */
export class RawSshClient {
  readonly socket: Socket;
  readonly protocol: Protocol;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
  /** Messages that `next` has not returned yet. */
  readonly received: Received[] = [];
  #wake: () => void = () => {};
  #ended = false;

  private constructor(socket: Socket, kex: string | undefined, onHandshake: (negotiated: { kex: string }) => void) {
    this.socket = socket;
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#ended = true;
        this.#wake();
        resolve();
      });
    });
    const handlers = messages.map((message) => [
      message,
      (_protocol: unknown, ...args: unknown[]) => {
        this.received.push({ message, args });
        this.#wake();
      },
    ]);
    const lists = { cipher: ['aes128-gcm@openssh.com'], mac: ['hmac-sha2-256'], compress: ['none'], lang: [] };
    this.protocol = new ProtocolClass({
      server: false,
      // ssh2's default without one.
      offer: kex === undefined ? undefined : { kex: [kex], serverHostKey: ['ssh-ed25519'], cs: lists, sc: lists },
      onWrite: (data: Buffer) => socket.writable && socket.write(data),
      onError: () => socket.destroy(),
      onHandshakeComplete: onHandshake,
      messageHandlers: Object.fromEntries(handlers) as object,
    });
    socket.on('error', () => {});
    socket.on('data', (data: Buffer) => {
      try {
        this.protocol.parse(data, 0, data.length);
      } catch {
        socket.destroy();
      }
    });
  }

  /** Connects and exchanges keys. */
  static async connect(port: number, options: { readonly kex?: string } = {}): Promise<RawSshClient> {
    const socket = connect(port, '127.0.0.1');
    await once(socket, 'connect');
    return new Promise((resolve, reject) => {
      const client: RawSshClient = new RawSshClient(socket, options.kex, () => {
        client.protocol.service('ssh-userauth');
        client.next('SERVICE_ACCEPT').then(() => resolve(client), reject);
      });
      void client.closed.then(() => reject(new Error('closed during the key exchange')));
      client.protocol.start();
    });
  }

  /** Connects and logs in as git. */
  static async logIn(port: number, key: ssh2.ParsedKey, options: { readonly kex?: string } = {}): Promise<RawSshClient> {
    const client = await RawSshClient.connect(port, options);
    client.signIn('git', key);
    await client.next('USERAUTH_SUCCESS');
    return client;
  }

  /** Sends a signed login request for the key `offered`; `signer`, another key for a hostile client, makes the signature. */
  signIn(user: string, offered: ssh2.ParsedKey, signer: ssh2.ParsedKey = offered): void {
    this.protocol.authPK(user, offered, (data, done) => done(signer.sign(data)));
  }

  /** Waits for the first of these messages. Rejects when the connection ends before. */
  async next(...wanted: readonly Message[]): Promise<Received> {
    for (;;) {
      const index = this.received.findIndex(({ message }) => wanted.includes(message));
      const [found] = index < 0 ? [] : this.received.splice(index, 1);
      if (found !== undefined) return found;
      if (this.#ended)
        throw new Error(
          `closed before ${wanted.join(' or ')}; received ${this.received.map(({ message }) => message).join(', ')}`,
        );
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** Opens the session channel `id`. Resolves with the server's number for it. */
  async openSession(id: number, window = 2 ** 21, packetSize = 2 ** 15): Promise<number> {
    this.protocol.session(id, window, packetSize);
    const { args } = await this.next('CHANNEL_OPEN_CONFIRMATION');
    return (args[0] as { sender: number }).sender;
  }

  /** Waits until the channel is closed. Resolves with what it printed on standard error, and the exit status. */
  async waitForEnd(): Promise<{ readonly stderr: string; readonly status: number | undefined }> {
    await this.next('CHANNEL_CLOSE');
    const texts = this.received.filter(({ message }) => message === 'CHANNEL_EXTENDED_DATA').map(({ args }) => String(args[1]));
    const exit = this.received.find(({ message, args }) => message === 'CHANNEL_REQUEST' && args[1] === 'exit-status');
    return { stderr: texts.join(''), status: exit?.args[3] as number | undefined };
  }

  /** Sends the first message of a key exchange and ignores the answers; after that it can send as if there were no exchange. */
  beginKeyExchangeOnly(): void {
    this.protocol.parse = () => {};
    this.protocol.rekey();
    const internals = this.protocol as unknown as {
      _kexinit: unknown;
      _packetRW: { write: { allocStart: number; allocStartKEX: number } };
    };
    internals._kexinit = undefined;
    internals._packetRW.write.allocStart = internals._packetRW.write.allocStartKEX;
  }

  /** Sends a CHANNEL_WINDOW_ADJUST message without its fields. */
  sendMalformedMessage(): void {
    const { _packetRW, _cipher } = this.protocol as unknown as {
      _packetRW: { write: { allocStart: number; alloc(bytes: number): Buffer; finalize(packet: Buffer): Buffer } };
      _cipher: { encrypt(packet: Buffer): void };
    };
    const packet = _packetRW.write.alloc(1);
    packet[_packetRW.write.allocStart] = 93;
    _cipher.encrypt(_packetRW.write.finalize(packet));
  }

  end(): void {
    this.socket.destroy();
  }
}

/** Makes RSA signatures with SHA-1, as clients did before 2016. */
export function signWithSha1(key: KeyObject): Signer {
  return (data, done) => done(sign('sha1', data, key));
}
