/**
 * A build hands its directory to the app that runs meanwhile, over an abstract Unix socket: both are in the app's network. The app
 * can then change the files of the build after its processes have ended. `node directory-passing.ts <milliseconds>` is the receiver.
 */

import { getRawPointer } from 'node:ffi';
import { mkdirSync, openSync, symlinkSync, writeFileSync } from 'node:fs';
import { systemCall } from './system-call.ts';

const pairs = 300;
const socketName = '\0directory-passing';
const unixFamily = 1;
const datagrams = 2;

/** struct sockaddr_un of the abstract name. */
function socketAddress(): Buffer {
  const address = Buffer.alloc(2 + socketName.length);
  address.writeUInt16LE(unixFamily);
  address.write(socketName, 2, 'latin1');
  return address;
}

/** struct msghdr for one byte and one descriptor, as sendmsg(2) and recvmsg(2) take it. All buffers must live as long as it. */
function message(descriptor: number, address?: Buffer): { header: Buffer; control: Buffer; held: Buffer[] } {
  const data = Buffer.from('x');
  const vector = Buffer.alloc(16);
  vector.writeBigUInt64LE(getRawPointer(data));
  vector.writeBigUInt64LE(1n, 8);
  const control = Buffer.alloc(24);
  control.writeBigUInt64LE(20n);
  control.writeInt32LE(1, 8);
  control.writeInt32LE(1, 12);
  control.writeInt32LE(descriptor, 16);
  const header = Buffer.alloc(56);
  if (address !== undefined) header.writeBigUInt64LE(getRawPointer(address));
  header.writeUInt32LE(address?.length ?? 0, 8);
  header.writeBigUInt64LE(getRawPointer(vector), 16);
  header.writeBigUInt64LE(1n, 24);
  header.writeBigUInt64LE(getRawPointer(control), 32);
  header.writeBigUInt64LE(24n, 40);
  return { header, control, held: [data, vector, ...(address === undefined ? [] : [address])] };
}

const openSocket = (): number => systemCall({ x64: 41, arm64: 198 }, unixFamily, datagrams, 0).value;

/**
 * Makes pairs of a directory and a link to a directory of the host, with the same names inside, and passes the directory that they are in.
 * @returns errno of sendmsg(2), 0 when it was passed
 */
export function passDirectory({ target, names }: { target: string; names: string[] }): number {
  mkdirSync('pairs');
  for (let i = 0; i < pairs; i++) {
    mkdirSync(`pairs/d${i}/inner`, { recursive: true });
    for (const name of names) writeFileSync(`pairs/d${i}/${name}`, '');
    symlinkSync(target, `pairs/l${i}`);
  }
  const { header, held } = message(openSync('pairs', 'r'), socketAddress());
  const { errno } = systemCall({ x64: 46, arm64: 211 }, openSocket(), header, 0);
  return held.length === 0 ? -1 : errno;
}

/** Receives the directory, and exchanges each directory with its link over and over. */
function receiveAndExchange(milliseconds: number): void {
  const socket = openSocket();
  const address = socketAddress();
  systemCall({ x64: 49, arm64: 200 }, socket, address, address.length);
  console.log('listening');
  const { header, control, held } = message(-1);
  if (systemCall({ x64: 47, arm64: 212 }, socket, header, 0).value !== held.length - 1) throw new Error('recvmsg');
  const directory = control.readInt32LE(16);
  const exchange = 2;
  for (const end = Date.now() + milliseconds; Date.now() < end; )
    for (let i = 0; i < pairs; i++) systemCall({ x64: 316, arm64: 276 }, directory, `d${i}`, directory, `l${i}`, exchange);
}

if (import.meta.main) receiveAndExchange(Number(process.argv[2]));
