import type { Socket } from 'node:net';
import type { ServerChannel } from 'ssh2';

/** A login is a few kilobytes. */
const loginBytes = 256 * 1024;
/** Replies the client has not read, at which it is not listened to until it has. */
const unreadReplyBytes = 4 * 1024 * 1024;
/** ssh2 grants windows of 2 MiB, but takes more from a client that ignores them. */
const unreadChannelBytes = 8 * 1024 * 1024;

/**
 * Bounds what one client can make this process hold in memory, where ssh2 does not. To be called once ssh2 listens to the
 * socket: a listener added earlier would start the flow and lose bytes.
 */
export function guardFlow(
  socket: Socket,
  state: { authenticated(): boolean; readonly channels: ReadonlySet<ServerChannel>; violated(what: string): void },
): void {
  socket.on('data', () => {
    if (!state.authenticated() && socket.bytesRead > loginBytes) return state.violated('much data before login');
    for (const channel of state.channels) {
      if (channel.readableLength > unreadChannelBytes) return state.violated('more data than the window allows');
    }
    if (socket.writableLength > unreadReplyBytes) socket.pause();
  });
  socket.on('drain', () => {
    if (socket.isPaused()) socket.resume();
  });
}
