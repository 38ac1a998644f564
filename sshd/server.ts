import { createServer, type Server, type Socket } from 'node:net';
import ssh2 from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Pushes } from '#shared/core/pushes/pushes.ts';
import type { GitServer } from '#shared/git/git-storage.ts';
import type { Log } from '#shared/log.ts';
import { chain } from './commands/command-handler.ts';
import { logged } from './commands/middleware/log-commands.ts';
import { keyStillRegistered } from './commands/middleware/recheck-key.ts';
import { shellGreeted } from './commands/middleware/refuse-shell.ts';
import { faultsTold } from './commands/middleware/report-errors.ts';
import { gitServed } from './commands/serve-git.ts';
import { type House, type LiveConnection, serveConnection } from './connections/connection.ts';
import type { HostKey } from './host-keys.ts';
import { HandshakeTurns } from './protection/handshake-scheduler.ts';
import { Penalties } from './protection/penalties.ts';
import { WaitingRoom } from './protection/pending-connections.ts';
import { sourceOf } from './protection/source-address.ts';
import type { SshLimits } from './protection/ssh-limits.ts';
import { algorithms } from './ssh2/algorithms.ts';

export interface SshServerOptions {
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  readonly pushes: Pushes;
  readonly git: GitServer;
  readonly hostKeys: readonly HostKey[];
  readonly limits: SshLimits;
  readonly clock: Clock;
  readonly log: Log;
}

export interface SshServer {
  /** @param port 0 for any free one. Resolves with the port. Rejects when it is taken. */
  listen(port: number, host: string): Promise<number>;
  /** Takes nothing new, lets commands end for `graceMilliseconds`, then ends them. Resolves when all connections are closed. */
  close(graceMilliseconds?: number): Promise<void>;
}

/** The SSH door: people log in by public key as `git`, and push to and fetch from the repositories of their apps. */
export function createSshServer(options: SshServerOptions): SshServer {
  const { limits, clock, log } = options;
  const connections = new Set<LiveConnection>();
  const penalties = new Penalties(limits, clock);
  const house: House = {
    ssh: {
      hostKeys: options.hostKeys.map(({ privateKey }) => ({ key: parsePrivateKey(privateKey) })),
      algorithms,
      ident: 'paas',
      keepaliveInterval: limits.keepaliveSeconds * 1000,
      keepaliveCountMax: limits.keepaliveMisses,
    },
    sshKeys: options.sshKeys,
    handle: chain(
      [logged(log, clock), faultsTold(log), keyStillRegistered(options.sshKeys), shellGreeted],
      gitServed(options.pushes, options.git),
    ),
    waitingRoom: new WaitingRoom(limits, clock),
    handshakeTurns: new HandshakeTurns(),
    penalties,
    limits,
    clock,
    log,
  };

  const server = createServer((socket) => {
    const source = sourceOf(socket.remoteAddress ?? '');
    const seconds = penalties.refusedForSeconds(source);
    if (seconds > 0) return turnAway(socket, `Too many failed logins from your address. Try again in ${seconds} s.`);
    if (connections.size >= limits.connections) return turnAway(socket, 'Too many connections. Try again in a minute.');
    const connection = serveConnection(socket, source, house);
    connections.add(connection);
    socket.once('close', () => connections.delete(connection));
  });

  return {
    async listen(port, host) {
      await listening(server, port, host);
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

/** Before the protocol starts a server may send lines of text (RFC 4253 §4.2); clients show them in their error or with -v. */
function turnAway(socket: Socket, reason: string): void {
  socket.on('error', () => {});
  socket.end(`${reason}\r\n`);
  socket.resume();
  setTimeout(() => socket.destroy(), 1000).unref();
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
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
