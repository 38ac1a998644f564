import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { chmod, lstat, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';

/** What the operator has on the machine and no tenant may touch. Each reports who touched it. */
export interface Canaries {
  /** A word that is nowhere else. */
  readonly word: string;
  /** Mode 700. Contains `secret.txt` with the word, and directories and files with mode 600 and 700. */
  readonly directory: string;
  /** Mode 600, contains the word. */
  readonly file: string;
  /** TCP listeners on the host. */
  readonly targets: readonly (readonly [host: string, port: number])[];
  /** A UDP listener on all addresses of the host. */
  readonly datagramPort: number;
  /** Unix sockets: one in the file system that everybody may write to, and an abstract one. */
  readonly sockets: readonly string[];
  /** A process of root with the word in its environment. */
  readonly pid: number;
  /** Connections and datagrams that arrived since the last call. */
  takeVisits(): string[];
  /** What is different from the beginning about the files; undefined for nothing. */
  findChanges(): Promise<string | undefined>;
  isProcessAlive(): boolean;
  close(): Promise<void>;
}

export async function openCanaries(): Promise<Canaries> {
  const word = `canary-${randomBytes(12).toString('hex')}`;
  const directory = await mkdtemp(join(tmpdir(), 'paas-canary-'));
  const file = join(directory, 'secret.txt');
  await fillDirectory(directory, word);
  const before = await describeTree(directory);
  let visits: string[] = [];
  const servers: Server[] = [];
  const listen = async (name: string, options: { path: string } | { host: string; port: number }): Promise<number> => {
    const server = createServer((socket) => {
      visits.push(name);
      socket.on('error', () => undefined);
      socket.end(word);
    });
    servers.push(server);
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(options, resolve));
    return (server.address() as AddressInfo).port;
  };
  const loopbackPort = await listen('127.0.0.1', { host: '127.0.0.1', port: 0 });
  const anyPort = await listen('every address', { host: '::', port: 0 });
  const sockets = [join(tmpdir(), `${word}.sock`), `\0${word}`];
  for (const path of sockets) await listen(path.replace('\0', '@'), { path });
  await chmod(sockets[0] ?? '', 0o777);
  const datagrams = createSocket('udp4', (message) => visits.push(`datagram ${message.toString()}`));
  await new Promise<void>((resolve) => datagrams.bind(0, '0.0.0.0', resolve));
  const child: ChildProcess = spawn('/bin/sleep', ['86400'], { env: { CANARY: word }, stdio: 'ignore' });
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  const hosts = addresses.filter(({ address }) => !address.startsWith('fe80')).map(({ address }) => address);
  return {
    word,
    directory,
    file,
    targets: [
      ['127.0.0.1', loopbackPort],
      ...[...new Set(['127.0.0.1', '::1', ...hosts])].map((host) => [host, anyPort] as const),
    ],
    datagramPort: datagrams.address().port,
    sockets,
    pid: child.pid ?? 0,
    takeVisits() {
      const taken = visits;
      visits = [];
      return taken;
    },
    async findChanges() {
      const now = await describeTree(directory);
      const changed = now.filter((line) => !before.includes(line));
      const gone = before.filter((line) => !now.includes(line));
      return changed.length + gone.length === 0
        ? undefined
        : `now ${changed.slice(0, 5).join('; ')} instead of ${gone.slice(0, 5).join('; ')}`;
    },
    isProcessAlive: () => child.exitCode === null && child.signalCode === null,
    async close() {
      child.kill('SIGKILL');
      datagrams.close();
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function fillDirectory(directory: string, word: string): Promise<void> {
  await writeFile(join(directory, 'secret.txt'), word, { mode: 0o600 });
  await mkdir(join(directory, 'inner'), { mode: 0o700 });
  for (let i = 0; i < 20; i++) await writeFile(join(directory, 'inner', `f${i}`), word, { mode: 0o600 });
  await writeFile(join(directory, 'package.json'), JSON.stringify({ name: word, scripts: { start: word } }), { mode: 0o600 });
}

/** Path, kind and mode, owner and content of everything in a directory. */
async function describeTree(directory: string): Promise<string[]> {
  const lines: string[] = [];
  for (const entry of ['', ...(await readdir(directory, { recursive: true }))].sort()) {
    const facts = await lstat(join(directory, entry));
    const content = facts.isFile() ? await readFile(join(directory, entry), 'utf8') : '';
    lines.push(`${entry} ${facts.mode.toString(8)} ${facts.uid}:${facts.gid} ${content}`);
  }
  return lines;
}
