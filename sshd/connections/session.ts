import type { Socket } from 'node:net';
import type { Connection, ServerChannel, Session } from 'ssh2';
import { parseGitProtocol } from '#shared/git/protocol/git-request.ts';
import type { Command } from '#sshd/commands/command-handler.ts';
import { maxPacketBytes } from '#sshd/ssh2/internals.ts';
import { openChannelStream } from './channel-stream.ts';

/** A client that accepts fewer bytes a packet would keep this process busy with empty or tiny packets. */
const smallestPacketBytes = 1024;

/** The part of a command that the session knows; the connection adds who sent it. */
export type SessionCommand = Pick<Command, 'text' | 'stream' | 'printError'>;

export interface SessionOptions {
  readonly client: Connection;
  readonly socket: Socket;
  /** How long the client may let a read or a write wait. */
  readonly idleSeconds: number;
  /** Aborted when the connection is gone. */
  readonly connectionGone: AbortSignal;
  /** Runs the command. Resolves with its exit status. */
  run(command: SessionCommand): Promise<number>;
  onChannel(channel: ServerChannel): void;
  /** Called with an unexpected error. */
  onError(error: unknown): void;
  /** Closes the connection. */
  disconnect(): void;
}

/**
 * Serves one session channel (RFC 4254 §6): at most one command, and no environment variable but GIT_PROTOCOL. A request
 * for a terminal is accepted without one, since clients send it by default.
 */
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
    if (maxPacketBytes(channel) < smallestPacketBytes) return options.disconnect();
    channel.on('error', options.disconnect);
    channel.stderr.on('error', options.disconnect);
    options.onChannel(channel);
    runCommand(channel, text).catch(options.onError);
  };

  const runCommand = async (channel: ServerChannel, text: string | undefined): Promise<void> => {
    const stream = openChannelStream(channel, options, {
      protocol,
      clientGone,
      idleSeconds: options.idleSeconds,
      onIdle: options.disconnect,
    });
    const printError = (...lines: readonly string[]): Promise<void> =>
      writeError(channel, lines.map((line) => line + lineEnd).join(''), clientGone);
    const status = await options.run({ text, stream, printError });
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
    // From now on the client's terminal is in raw mode.
    lineEnd = '\r\n';
    accept?.();
  });
  session.on('shell', (accept, reject) => start(accept, reject, undefined));
  session.on('exec', (accept, reject, { command }) => start(accept, reject, command));
}

/** Resolves when ssh2 has taken the text, or when the client is gone: ssh2 never calls back then. */
function writeError(channel: ServerChannel, text: string, clientGone: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (clientGone.aborted) return resolve();
    clientGone.addEventListener('abort', () => resolve(), { once: true });
    channel.stderr.write(text, () => resolve());
  });
}
