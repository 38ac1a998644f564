import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { createInterface } from 'node:readline';
import { runChecked } from '#test/support/run-program.ts';

/** A machine in the operator's private network, with the addresses that such machines have and that of a cloud's metadata service. */
export interface Neighbour {
  readonly targets: readonly (readonly [host: string, port: number])[];
  /** Addresses that were connected to since the last call. */
  takeVisits(): string[];
  close(): Promise<void>;
}

const port = 80;
const server = `require('node:net').createServer((socket) => {
  console.log(socket.localAddress);
  socket.on('error', () => undefined).end('neighbour');
}).listen(${port}, '0.0.0.0', () => console.log('ready'));`;

/** As root: a network namespace that the host reaches by a route for each address. */
export async function openNeighbour(): Promise<Neighbour> {
  const number = randomInt(1, 250);
  const name = `probe${process.pid}`;
  const link = `10.254.${number}`;
  const addresses = [`${link}.2`, `192.168.254.${number}`, `172.31.254.${number}`, `100.127.254.${number}`, '169.254.169.254'];
  const ip = (...args: string[]) => runChecked('ip', args);
  await ip('netns', 'add', name);
  await ip('link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name);
  await ip('addr', 'add', `${link}.1/30`, 'dev', name);
  await ip('link', 'set', name, 'up');
  const inside = (...args: string[]) => ip('netns', 'exec', name, 'ip', ...args);
  await inside('addr', 'add', `${link}.2/30`, 'dev', 'eth0');
  for (const device of ['lo', 'eth0']) await inside('link', 'set', device, 'up');
  await inside('route', 'add', 'default', 'via', `${link}.1`);
  for (const [index, address] of addresses.slice(1).entries()) {
    await inside('addr', 'add', `${address}/32`, 'dev', 'lo');
    // Another run on this machine may have a route to the same address: the first one counts.
    await ip('route', 'add', `${address}/32`, 'via', `${link}.2`, 'metric', String(1000 + number * 10 + index));
  }
  let visits: string[] = [];
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', server], { stdio: ['ignore', 'pipe', 'inherit'] });
  await untilReady(child, (line) => visits.push(line));
  return {
    targets: addresses.map((address) => [address, port] as const),
    takeVisits() {
      const taken = visits;
      visits = [];
      return taken;
    },
    async close() {
      child.kill('SIGKILL');
      await ip('netns', 'delete', name);
    },
  };
}

async function untilReady(child: ChildProcess, line: (text: string) => void): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.once('exit', (code) => reject(new Error(`The neighbour's server ended with ${code}.`)));
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on('line', (text) => (text === 'ready' ? resolve() : line(text)));
  await promise;
}
