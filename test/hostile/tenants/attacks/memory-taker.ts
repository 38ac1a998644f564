/** `node memory-taker.ts <kind> <mebibytes>`: takes memory of a kind until it cannot, and prints how many MiB it has. */
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { systemCall } from './system-call.ts';

const mebibyte = Buffer.alloc(1024 * 1024, 1);
const held: unknown[] = [];

/** Each takes a MiB, or says how many bytes it took. */
const takers: Readonly<Record<string, (index: number) => void | Promise<number>>> = {
  heap: () => void held.push(Buffer.alloc(mebibyte.length, 1)),
  '/dev/shm': (index) => writeFile(`/dev/shm/${index}`),
  '/tmp': (index) => writeFile(`/tmp/taken-${index}`),
  '/app': (index) => writeFile(`/app/taken-${index}`),
  memfd: () => {
    const { value, errno } = systemCall({ x64: 319, arm64: 279 }, 'taken', 0);
    if (errno !== 0) throw new Error('memfd_create');
    writeSync(value, mebibyte);
  },
  'shared segments': () => {
    const { value, errno } = systemCall({ x64: 29, arm64: 194 }, 0, mebibyte.length, 0o1600);
    const address = errno === 0 ? systemCall({ x64: 30, arm64: 196 }, value, 0, 0) : { value: -1, errno: 1 };
    if (address.errno !== 0) throw new Error('shmget');
    // A page of it is taken when it is touched: madvise(MADV_POPULATE_WRITE).
    if (systemCall({ x64: 28, arm64: 233 }, address.value, mebibyte.length, 23).errno !== 0) throw new Error('madvise');
  },
  // A file costs about a KiB of the kernel's memory, and nothing of the file system's size.
  'files of no size': (index) => {
    mkdirSync(`/dev/shm/files-${index}`, { recursive: true });
    for (let i = 0; i < 1024; i++) closeSync(openSync(`/dev/shm/files-${index}/${i}`, 'w'));
  },
  // Received by nobody: the kernel holds it.
  'connections to itself': async () => {
    const server = createServer({ pauseOnConnect: true }, (socket) => held.push(socket));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as { port: number };
    const socket = await new Promise<Socket>((resolve, reject) => {
      const made = connect({ port, host: '127.0.0.1' }, () => resolve(made));
      made.once('error', reject);
    });
    held.push(server, socket);
    // Without waiting for the other side: what fits into the buffers of both.
    const descriptor = (socket as unknown as { _handle: { fd: number } })._handle.fd;
    let sent = 0;
    for (;;) {
      try {
        sent += writeSync(descriptor, mebibyte);
      } catch {
        return sent;
      }
    }
  },
};

function writeFile(path: string): void {
  const file = openSync(path, 'w');
  writeSync(file, mebibyte);
  closeSync(file);
}

const [, , kind = '', wanted = '0'] = process.argv;
const take = takers[kind];
if (take === undefined) throw new Error(`There is no taker of ${kind}.`);
try {
  let printed = 0;
  for (let [index, taken] = [0, 0]; taken < Number(wanted); index++) {
    taken += ((await take(index)) ?? mebibyte.length) / mebibyte.length;
    if (taken < printed + 8 && taken < Number(wanted)) continue;
    printed = taken;
    writeSync(1, `${Math.floor(taken)}\n`);
  }
} catch {
  // That was all.
}
process.exit(0);
