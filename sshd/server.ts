import { createServer, type ListenOptions, type Server, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import type { GitServer } from '#shared/git/git-storage.ts';
import type { Log } from '#shared/log.ts';
import { chain } from './commands/command-handler.ts';
import { logCommands } from './commands/middleware/log-commands.ts';
import { recheckKey } from './commands/middleware/recheck-key.ts';
import { refuseShell } from './commands/middleware/refuse-shell.ts';
import { reportErrors } from './commands/middleware/report-errors.ts';
import { serveGit } from './commands/serve-git.ts';
import { type ConnectionDependencies, type OpenConnection, serveConnection } from './connections/connection.ts';
import type { HostKey } from './host-keys.ts';
import { HandshakeScheduler } from './protection/handshake-scheduler.ts';
import { Penalties } from './protection/penalties.ts';
import { PendingConnections } from './protection/pending-connections.ts';
import { sourceOf } from './protection/source-address.ts';
import type { SshLimits } from './protection/ssh-limits.ts';
import { algorithms } from './ssh2/algorithms.ts';

export interface SshServerOptions {
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  readonly pushes: Pushes;
  readonly git: GitServer;
  /** In order of preference, at least one. */
  readonly hostKeys: readonly HostKey[];
  readonly limits: SshLimits;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SshServer {
  /**
   * @param port 0 for any free one
   * @param shared whether other processes of this user may listen there, too: the kernel spreads connections over them
   * @returns the port
   * @throws Error when the port is taken
   */
  listen(port: number, host: string, shared?: boolean): Promise<number>;
  /**
   * Accepts no more connections, lets running commands end for `graceMilliseconds` (10 s by default), then ends them.
   * Resolves when all connections are closed.
   */
  close(graceMilliseconds?: number): Promise<void>;
}

/** Creates the SSH entry point: people log in by public key as `git`, and push to and fetch from the repositories of their apps. */
export function createSshServer(options: SshServerOptions): SshServer {
  const { limits, clock, log } = options;
  const connections = new Set<OpenConnection>();
  const penalties = new Penalties(limits, clock);
  const dependencies: ConnectionDependencies = {
    ssh: {
      hostKeys: options.hostKeys.map(({ privateKey }) => ({ key: parsePrivateKey(privateKey) })),
      algorithms,
      ident: 'paas',
      keepaliveInterval: limits.keepaliveSeconds * 1000,
      keepaliveCountMax: limits.keepaliveMisses,
    },
    sshKeys: options.sshKeys,
    handle: chain(
      [logCommands(log, clock), reportErrors(log), recheckKey(options.sshKeys), refuseShell],
      serveGit(options.pushes, options.git),
    ),
    pendingConnections: new PendingConnections(limits, clock),
    handshakes: new HandshakeScheduler(),
    penalties,
    limits,
    clock,
    log,
  };

  const server = createServer((socket) => {
    const source = sourceOf(socket.remoteAddress ?? '');
    const seconds = penalties.refusedForSeconds(source);
    if (seconds > 0) return refuse(socket, `Too many failed logins from your address. Try again in ${seconds} s.`);
    if (connections.size >= limits.connections) return refuse(socket, 'Too many connections. Try again in a minute.');
    const connection = serveConnection(socket, source, dependencies);
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  });

  return {
    async listen(port, host, shared = false) {
      await listening(server, { port, host, reusePort: shared });
      server.on('error', (error) => log.error('ssh server failed', { error }));
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : port;
    },
    async close(graceMilliseconds = 10_000) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const connection of connections) connection.finish();
      const deadline = setTimeout(() => {
        for (const connection of connections) connection.destroy();
      }, graceMilliseconds);
      await closed;
      clearTimeout(deadline);
    },
  };
}

/** A server may send lines of text before the protocol starts (RFC 4253 §4.2); clients show them with their error or with -v. */
function refuse(socket: Socket, reason: string): void {
  socket.on('error', () => {});
  socket.end(`${reason}\r\n`);
  socket.resume();
  setTimeout(() => socket.destroy(), 1000).unref();
}

function listening(server: Server, address: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
}

function parsePrivateKey(text: string): ssh2.ParsedKey {
  const key = ssh2.utils.parseKey(text);
  if (key instanceof Error) throw key;
  return key;
}
