import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { connect, createServer, type NetConnectOpts } from 'node:net';
import { networkInterfaces } from 'node:os';
import { systemCall } from './system-call.ts';

function answers(options: NetConnectOpts): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ ...options, timeout: 700 } as NetConnectOpts);
    const end = (open: boolean): void => {
      socket.destroy();
      resolve(open);
    };
    socket
      .on('connect', () => end(true))
      .on('error', () => end(false))
      .on('timeout', () => end(false));
  });
}

/** `host:port` of those that accept a TCP connection. */
async function connectTo({ targets }: { targets: [host: string, port: number][] }): Promise<string[]> {
  const open: string[] = [];
  for (let at = 0; at < targets.length; at += 100) {
    const part = targets.slice(at, at + 100);
    const found = await Promise.all(
      part.map(async ([host, port]) => ((await answers({ host, port })) ? [`${host}:${port}`] : [])),
    );
    open.push(...found.flat());
  }
  return open;
}

/** Those of the Unix sockets that accept a connection. A name that begins with NUL is abstract. */
async function connectToSockets({ paths }: { paths: string[] }): Promise<string[]> {
  const open = await Promise.all(paths.map(async (path) => ((await answers({ path })) ? [path.replace('\0', '@')] : [])));
  return open.flat();
}

/** Sends a datagram to each; nobody knows here whether it arrived. */
async function sendDatagrams({ targets, message }: { targets: [host: string, port: number][]; message: string }): Promise<void> {
  const socket = createSocket('udp4');
  socket.on('error', () => undefined);
  await Promise.all(
    targets.map(([host, port]) => new Promise<void>((resolve) => socket.send(message, port, host, () => resolve()))),
  );
  await new Promise((resolve) => setTimeout(resolve, 200));
  socket.close();
}

/** Listens on ports of all addresses; those that were free here. They stay open. */
async function listenOn({ ports }: { ports: number[] }): Promise<number[]> {
  const open = await Promise.all(
    ports.map(
      (port) =>
        new Promise<number[]>((resolve) => {
          const server = createServer((socket) => socket.end('mallory'));
          server.once('error', () => resolve([]));
          server.listen(port, '0.0.0.0', () => resolve([port]));
        }),
    ),
  );
  return open.flat();
}

/** Names of sockets' kinds that can be made. Address families and types as in socket(2). */
function makeSockets({ kinds }: { kinds: [name: string, family: number, type: number, protocol: number][] }): string[] {
  return kinds.filter(([, ...kind]) => systemCall({ x64: 41, arm64: 198 }, ...kind).errno === 0).map(([name]) => name);
}

function listInterfaces(): string[] {
  return Object.keys(networkInterfaces());
}

/** Addresses that names have, as the app's resolver says. */
async function resolveNames({ names }: { names: string[] }): Promise<string[]> {
  const found = await Promise.all(names.map((name) => lookup(name, { all: true }).catch(() => [])));
  return found.flat().map(({ address }) => address);
}

/** Opens many flows to as many ports of hosts that do not answer. The kernel keeps each for a while. */
async function openFlows({ hosts, count }: { hosts: string[]; count: number }): Promise<number> {
  let sent = 0;
  const sockets = Array.from({ length: 4 }, () => createSocket('udp4').on('error', () => undefined));
  while (sent < count) {
    const batch = sockets.flatMap((socket, index) =>
      Array.from(
        { length: 100 },
        (_, at) =>
          new Promise<void>((resolve) =>
            socket.send('x', 1024 + ((sent + index * 100 + at) % 60_000), hosts[sent % hosts.length] ?? '', () => resolve()),
          ),
      ),
    );
    await Promise.all(batch);
    sent += batch.length;
  }
  for (const socket of sockets) socket.close();
  return sent;
}

export const networkAttempts = {
  connectTo,
  connectToSockets,
  sendDatagrams,
  listenOn,
  makeSockets,
  listInterfaces,
  resolveNames,
  openFlows,
};
