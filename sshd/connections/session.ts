import type { Socket } from 'node:net';
import type { Connection, ServerChannel, Session } from 'ssh2';
import { parseGitProtocol } from '#shared/git/protocol/git-request.ts';
import type { Command } from '../commands/command-handler.ts';
import { openChannelStream } from './channel-stream.ts';

/** A client that takes fewer bytes a packet would have us spin on empty or tiny packets. */
const smallestPacketBytes = 1024;

/** What the session knows of a command; who gives it is the connection's to add. */
export type SessionCommand = Pick<Command, 'text' | 'stream' | 'say'>;

export interface SessionOptions {
  readonly client: Connection;
  readonly socket: Socket;
  readonly idleSeconds: number;
  /** Aborted when the connection is gone. */
  readonly connectionGone: AbortSignal;
  /** Runs the command; resolves with the exit status. */
  run(command: SessionCommand): Promise<number>;
  onChannel(channel: ServerChannel): void;
  /** Something threw that should not have. */
  onFault(error: unknown): void;
  hangUp(): void;
}

/** One session channel: at most one command, no environment but GIT_PROTOCOL, and no terminal, though asking for one is no fault. */
export function serveSession(session: Session, options: SessionOptions): void {
  const closed = new AbortController();
  const clientGone = AbortSignal.any([closed.signal, options.connectionGone]);
  let started = false;
  let lineEnd = '\n';
  let protocol = '';

  const start = (open: () => ServerChannel | undefined, reject: (() => void) | undefined, text: string | undefined): void => {
    const channel = started ? undefined : open();
    if (channel === undefined) return reject?.();
    started = true;
    // Its type promises these; ssh2 takes what the client announced.
    const { outgoing } = channel as unknown as { readonly outgoing: { readonly packetSize: number } };
    if (outgoing.packetSize < smallestPacketBytes) return options.hangUp();
    channel.on('error', options.hangUp);
    channel.stderr.on('error', options.hangUp);
    options.onChannel(channel);
    answer(channel, text).catch(options.onFault);
  };

  const answer = async (channel: ServerChannel, text: string | undefined): Promise<void> => {
    const stream = openChannelStream(channel, options, {
      protocol,
      clientGone,
      idleSeconds: options.idleSeconds,
      onIdle: options.hangUp,
    });
    const say = (...lines: readonly string[]): Promise<void> =>
      writeText(channel, lines.map((line) => line + lineEnd).join(''), clientGone);
    const status = await options.run({ text, stream, say });
    if (clientGone.aborted) return;
    channel.exit(status);
    channel.end();
  };

  session.on('close', () => closed.abort());
  session.on('env', (accept, reject, { key, val }) => {
    const value = key === 'GIT_PROTOCOL' ? parseGitProtocol(val) : undefined;
    if (value === undefined) return reject?.();
    protocol = value;
    accept?.();
  });
  session.on('pty', (accept) => {
    // The client's terminal is raw from now on.
    lineEnd = '\r\n';
    accept?.();
  });
  session.on('shell', (accept, reject) => start(accept, reject, undefined));
  session.on('exec', (accept, reject, { command }) => start(accept, reject, command));
}

/** Resolves when ssh2 has taken it all or the client has gone, after which ssh2 would never call back. */
function writeText(channel: ServerChannel, text: string, gone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (gone.aborted) return resolve();
    gone.addEventListener('abort', () => resolve(), { once: true });
    channel.stderr.write(text, () => resolve());
  });
}
