/**
 * Everything that sshd/ uses of ssh2 beyond its documented interface. docs/private-internals.md lists it;
 * internals.test.ts fails when an upgrade of ssh2 changes any of it.
 */
import type { Socket } from 'node:net';
import type { Connection, ServerChannel } from 'ssh2';

/**
 * Whether a key exchange is under way. From its first message to its last ssh2 queues whatever is written, without a limit
 * and without back pressure, so a writer of much data must wait for the `rekey` event.
 */
export function isExchangingKeys(client: Connection): boolean {
  const { _protocol: protocol } = client as unknown as { readonly _protocol: { readonly _kexinit?: unknown } };
  return protocol._kexinit !== undefined;
}

/** The largest packet that the client accepts on the channel, in bytes: the number it sent, which may be 0. */
export function maxPacketBytes(channel: ServerChannel): number {
  const { outgoing } = channel as unknown as { readonly outgoing: { readonly packetSize: number } };
  return outgoing.packetSize;
}

/**
 * Takes the socket's input away from ssh2, which reads it by `data` listeners of its own. To be called once ssh2 has the
 * socket and before anything else listens.
 * @returns passes bytes on to ssh2
 */
export function interceptInput(socket: Socket): (data: Buffer) => void {
  const listeners = socket.listeners('data') as ((data: Buffer) => void)[];
  socket.removeAllListeners('data');
  return (data) => {
    for (const listener of listeners) listener.call(socket, data);
  };
}

/** Why ssh2 gives a connection up: the client broke the protocol, answered no keepalives, or something else. */
export function connectionFailure(error: Error & { readonly level?: string }): 'protocol-violation' | 'no-keepalive' | 'other' {
  if (error.level === 'protocol') return 'protocol-violation';
  return error.level === 'client-timeout' ? 'no-keepalive' : 'other';
}
