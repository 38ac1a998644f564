import { execFileSync, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, constants, mkdir, readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createLog } from '#shared/log.ts';
import { startPostgres } from '#shared/platform/local/postgres/postgres-server.ts';
import { residentBytes } from '#test/bench/push/process-tree.ts';
import { freePort } from '#test/support/servers/free-port.ts';

/** A server to measure. */
export interface BenchServer {
  name: string;
  /** Its processes are these and all their descendants. */
  pids: readonly number[];
  /** Memory of the processes before any work. */
  idleBytes: number;
  url(repository: string): string;
  /** Creates an empty repository, if the server does not do that by itself. */
  create(repository: string): void;
  /** Runs the maintenance of a git host after a push, if the server does not do that by itself. */
  collectGarbage(repository: string): void;
  /** p99 in milliseconds since the last call; undefined for a server without an event loop. */
  eventLoopDelay(): Promise<number | undefined>;
}

/** Something to be closed. */
export interface Closeable {
  close(): Promise<void>;
}

/** Generates the key that both servers accept. Returns the path of the private key and the text of the public one. */
export async function makeClientKey(directory: string): Promise<{ file: string; publicKey: string }> {
  const file = join(directory, 'client-key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'bench', '-f', file]);
  return { file, publicKey: (await readFile(`${file}.pub`, 'utf8')).trim() };
}

/** Starts our SSH server and git storage, with a PostgreSQL of their own that flushes to disk. */
export async function openOurs(directory: string, publicKey: string): Promise<BenchServer & Closeable> {
  const log = createLog('warn', (line) => process.stderr.write(`${line}\n`));
  const postgres = await startPostgres({ directory: join(directory, 'postgres'), log });
  const host = fork(new URL('./git-host.ts', import.meta.url), [directory, postgres.url, publicKey]);
  const ended = once(host, 'exit').then(() => undefined);
  const port = await Promise.race([once(host, 'message').then(([started]) => (started as { port: number }).port), ended]);
  if (port === undefined) {
    await postgres.stop();
    throw new Error('our server did not start');
  }
  const postmaster = Number((await readFile(join(directory, 'postgres/cluster/postmaster.pid'), 'utf8')).split('\n')[0]);
  const pids = [host.pid ?? 0, postmaster];
  return {
    name: 'ours',
    pids,
    idleBytes: residentBytes(pids),
    url: (repository) => `ssh://git@127.0.0.1:${port}/${repository}.git`,
    create: () => undefined,
    collectGarbage: () => undefined,
    async eventLoopDelay() {
      const answer = once(host, 'message') as Promise<[{ p99: number }]>;
      host.send('delays');
      return (await answer)[0].p99;
    },
    async close() {
      host.kill();
      await ended;
      await postgres.stop();
    },
  };
}

const sshdProgram = '/usr/sbin/sshd';

/** @throws Error when OpenSSH's server is not installed */
export async function requireSshd(): Promise<void> {
  await access(sshdProgram, constants.X_OK).catch(() => {
    throw new Error(`${sshdProgram} is missing. Install it to compare with it: apt-get install openssh-server`);
  });
}

/**
 * Starts OpenSSH's sshd with git as Debian ships them, without `gc` during a push: once with git's defaults, and once with git
 * checking what it receives.
 */
export async function openTheirs(
  directory: string,
  publicKey: string,
): Promise<Closeable & { byDefault: BenchServer; checking: BenchServer }> {
  const port = await freePort();
  const repositories = join(directory, 'repositories');
  await mkdir(repositories, { recursive: true });
  await mkdir('/run/sshd', { recursive: true });
  const hostKey = join(directory, 'host-key');
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
  await writeFile(join(directory, 'authorized_keys'), `${publicKey}\n`);
  const config = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${hostKey}`,
    `AuthorizedKeysFile ${join(directory, 'authorized_keys')}`,
    'StrictModes no',
    'UsePAM no',
    'PermitRootLogin yes',
    'MaxStartups 200',
    'PidFile none',
    'LogLevel FATAL',
  ];
  await writeFile(join(directory, 'sshd_config'), `${config.join('\n')}\n`);
  const sshd = spawn(sshdProgram, ['-D', '-e', '-f', join(directory, 'sshd_config')], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = once(sshd, 'exit');
  await untilListening(port);
  const user = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
  const pids = [sshd.pid ?? 0];
  const server = (name: string, settings: readonly string[]): BenchServer => ({
    name,
    pids,
    idleBytes: residentBytes(pids),
    url: (repository) => `ssh://${user}@127.0.0.1:${port}${join(repositories, `${repository}.git`)}`,
    create(repository) {
      const path = join(repositories, `${repository}.git`);
      execFileSync('git', ['init', '-q', '--bare', '--initial-branch=main', path]);
      for (const setting of settings) execFileSync('git', ['-C', path, 'config', ...setting.split('=')]);
    },
    collectGarbage(repository) {
      const path = join(repositories, `${repository}.git`);
      execFileSync('git', ['-C', path, '-c', 'gc.autoDetach=false', 'gc', '--auto', '--quiet'], { stdio: 'ignore' });
    },
    eventLoopDelay: async () => undefined,
  });
  return {
    byDefault: server('OpenSSH + git', ['receive.autogc=false']),
    checking: server('OpenSSH + git, fsck', ['receive.autogc=false', 'receive.fsckObjects=true']),
    async close() {
      sshd.kill();
      await ended;
    },
  };
}

async function untilListening(port: number): Promise<void> {
  for (const end = Date.now() + 10_000; ; ) {
    const socket = connect(port, '127.0.0.1');
    const open = await Promise.race([once(socket, 'connect').then(() => true), once(socket, 'error').then(() => false)]).catch(
      () => false,
    );
    socket.destroy();
    if (open) return;
    if (Date.now() > end) throw new Error('sshd did not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
