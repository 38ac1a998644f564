import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import type { Connection, ServerChannel } from 'ssh2';
import type { GitStream } from '#shared/git/git-storage.ts';
import { isExchangingKeys } from '../ssh2/internals.ts';

/** Bytes the kernel has not taken yet, at which writing waits: ssh2 heeds the channel's window, but not the socket. */
const socketBacklogBytes = 1024 * 1024;

export interface ChannelStream extends GitStream {
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/**
 * A channel's two byte streams with back pressure in both directions. When the client has gone the input ends and writes
 * are dropped, so that work which outlives the client needs no second path; `clientGone` tells whoever wants to stop.
 *
 * @param idleSeconds how long the client may leave a read or a write waiting before `onIdle`
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
    // Not the channel's own iterator: that one destroys the channel as soon as a reader has enough.
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

/** Resolves at the first of the events, when the signal aborts, or after the idle time, which it reports. */
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
