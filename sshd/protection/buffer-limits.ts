import type { Socket } from 'node:net';
import type { ServerChannel } from 'ssh2';

/** A login takes a few kilobytes. */
const loginBytes = 256 * 1024;
/** Unsent replies at which nothing more is read from the client until it has read them. */
const unreadReplyBytes = 4 * 1024 * 1024;
/** ssh2 grants windows of 2 MiB, but accepts more from a client that ignores them. */
const unreadChannelBytes = 8 * 1024 * 1024;

/**
 * Limits the memory that one client can occupy where ssh2 has no limit. To be called once ssh2 listens to the socket: an
 * earlier `data` listener would start the flow and lose bytes.
 * @param state `onViolation` is called with the limit that the client exceeded
 */
export function limitBuffers(
  socket: Socket,
  state: { authenticated(): boolean; readonly channels: ReadonlySet<ServerChannel>; onViolation(what: string): void },
): void {
  socket.on('data', () => {
    if (!state.authenticated() && socket.bytesRead > loginBytes) return state.onViolation('too much data before login');
    for (const channel of state.channels) {
      if (channel.readableLength > unreadChannelBytes) return state.onViolation('more data than the window allows');
    }
    if (socket.writableLength > unreadReplyBytes) socket.pause();
  });
  socket.on('drain', () => {
    if (socket.isPaused()) socket.resume();
  });
}
