import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Connection, ServerChannel } from 'ssh2';
import type { GitStream } from '#shared/git/git-storage.ts';
import { isExchangingKeys } from '#sshd/ssh2/internals.ts';

/** Unsent bytes at which writing waits for the socket: ssh2 observes the channel's window only. */
const socketBacklogBytes = 1024 * 1024;

/** A git stream that counts its bytes. */
export interface ChannelStream extends GitStream {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/**
 * The input and output of a channel, with back pressure in both directions. When the client is gone the input ends and
 * writes are dropped, so that work which outlives the client needs no separate path.
 * @param options `idleSeconds`: how long the client may let a read or a write wait before `onIdle` is called
 */
export function openChannelStream(
  channel: ServerChannel,
  connection: { readonly client: Connection; readonly socket: Socket },
  options: { readonly protocol: string; readonly clientGone: AbortSignal; readonly idleSeconds: number; onIdle(): void },
): ChannelStream {
  const { client, socket } = connection;
  const { clientGone } = options;
  let bytesRead = 0;
  let bytesWritten = 0;
  const next = (...sources: readonly [EventEmitter, string][]): Promise<void> => nextEvent(sources, clientGone, options);

  async function* read(): AsyncGenerator<Uint8Array> {
    while (!clientGone.aborted) {
      const chunk = channel.read() as Buffer | null;
      if (chunk !== null) {
        bytesRead += chunk.length;
        yield chunk;
      } else if (channel.readableEnded) {
        return;
      } else {
        await next([channel, 'readable'], [channel, 'end']);
      }
    }
  }

  return {
    // Not the channel's own iterator, which destroys the channel when a reader stops early.
    input: { [Symbol.asyncIterator]: read },
    async write(chunk) {
      while (!clientGone.aborted && isExchangingKeys(client)) await next([client, 'rekey']);
      if (clientGone.aborted || !channel.writable) return;
      bytesWritten += chunk.length;
      if (!channel.write(chunk)) await next([channel, 'drain']);
      if (socket.writableLength > socketBacklogBytes) await next([socket, 'drain']);
    },
    protocol: options.protocol,
    clientGone,
    get bytesRead() {
      return bytesRead;
    },
    get bytesWritten() {
      return bytesWritten;
    },
  };
}

/** Resolves at the first of the events, when the signal aborts, or after the idle time and a call of `onIdle`. */
function nextEvent(
  sources: readonly (readonly [EventEmitter, string])[],
  signal: AbortSignal,
  idle: { readonly idleSeconds: number; onIdle(): void },
): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      for (const [emitter, name] of sources) emitter.removeListener(name, done);
      resolve();
    };
    const timer = setTimeout(() => {
      idle.onIdle();
      done();
    }, idle.idleSeconds * 1000);
    if (signal.aborted) return done();
    signal.addEventListener('abort', done);
    for (const [emitter, name] of sources) emitter.on(name, done);
  });
}
