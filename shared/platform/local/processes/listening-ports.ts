/** Where processes listen, to report an app that listens on the wrong port or address. */
import { readdir, readFile, readlink } from 'node:fs/promises';

export interface Listener {
  /** As in `127.0.0.1`; 'any' for all addresses. */
  address: string;
  port: number;
}

/** The listening sockets of processes in one network namespace. Empty where the kernel does not let us look. */
export async function readListeners(pids: readonly number[]): Promise<Listener[]> {
  const sockets = new Set((await Promise.all(pids.map(readSockets))).flat());
  return (await readSocketTables(pids)).flatMap((table) => parseSocketTable(table, sockets));
}

/** All listening sockets in the network namespace of some processes, whoever they belong to. */
export async function readAllListeners(pids: readonly number[]): Promise<Listener[]> {
  return (await readSocketTables(pids)).flatMap((table) => parseSocketTable(table));
}

/** Of the first of the processes that has not ended. */
async function readSocketTables(pids: readonly number[]): Promise<readonly string[]> {
  for (const pid of pids) {
    const paths = ['tcp', 'tcp6'].map((table) => `/proc/${pid}/net/${table}`);
    const tables = await Promise.all(paths.map((path) => readFile(path, 'latin1').catch(() => '')));
    if (tables.some((table) => table !== '')) return tables;
  }
  return [];
}

/**
 * Whether one of the processes listens on the port. Undefined where the kernel does not let us look. Processes that share a network
 * can take each other's ports, and a connection alone does not tell whose it is.
 */
export async function listensOn(pids: readonly number[], port: number): Promise<boolean | undefined> {
  if ((await readListeners(pids)).some((listener) => listener.port === port)) return true;
  const readable = await Promise.all(pids.map((pid) => readdir(`/proc/${pid}/fd`).catch(() => undefined)));
  return readable.some((descriptors) => descriptors !== undefined) ? false : undefined;
}

/**
 * proc(5): `sl local_address rem_address st … inode`, addresses in hexadecimal; state 0A is LISTEN.
 * @param inodes of the sockets that are wanted; left out: all
 */
export function parseSocketTable(table: string, inodes?: ReadonlySet<string>): Listener[] {
  return table
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter((fields) => fields[3] === '0A' && inodes?.has(fields[9] ?? '') !== false)
    .map((fields) => {
      const [address = '', port = ''] = (fields[1] ?? '').split(':');
      return { address: addressName(address), port: Number.parseInt(port, 16) };
    });
}

function addressName(hex: string): string {
  if (/^0+$/.test(hex)) return 'any';
  if (hex.length !== 8) return 'an IPv6 address';
  // Little-endian, as the machines that Node runs on are.
  return [6, 4, 2, 0].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)).join('.');
}

async function readSockets(pid: number): Promise<string[]> {
  const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => []);
  const targets = await Promise.all(descriptors.map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')));
  return targets.flatMap((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1] ?? []);
}
