import type { Socket } from 'node:net';
import ssh2, { type Connection, type ServerChannel, type ServerConfig } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Log } from '#shared/log.ts';
import { newRequestId } from '#shared/request-id.ts';
import type { CommandHandler } from '#sshd/commands/command-handler.ts';
import { type Authentication, authenticate, type Login } from '#sshd/login/authentication.ts';
import { limitBuffers } from '#sshd/protection/buffer-limits.ts';
import type { HandshakeScheduler } from '#sshd/protection/handshake-scheduler.ts';
import type { Offence, Penalties } from '#sshd/protection/penalties.ts';
import type { PendingConnection, PendingConnections } from '#sshd/protection/pending-connections.ts';
import type { SshLimits } from '#sshd/protection/ssh-limits.ts';
import { connectionFailure } from '#sshd/ssh2/internals.ts';
import { type SessionCommand, serveSession } from './session.ts';

/** Shared by all connections of a server. */
export interface ConnectionDependencies {
  readonly ssh: ServerConfig;
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  readonly handle: CommandHandler;
  readonly pendingConnections: PendingConnections;
  readonly handshakes: HandshakeScheduler;
  readonly penalties: Penalties;
  readonly limits: SshLimits;
  readonly clock: Clock;
  readonly log: Log;
}

/** A connection that is open. */
export interface OpenConnection {
  /** Accepts no more commands, and closes when the running ones have ended. */
  finish(): void;
  /** Closes at once. */
  destroy(): void;
}

/** How long a client may take to read the last messages. */
const lingerMilliseconds = 2000;

/**
 * Serves one TCP connection until it is closed.
 * @param source as `sourceOf` names it
 */
export function serveConnection(socket: Socket, source: string, dependencies: ConnectionDependencies): OpenConnection {
  const { limits, clock, log, penalties, pendingConnections } = dependencies;
  /** Aborted as soon as nothing can reach the client any more. */
  const gone = new AbortController();
  const channels = new Set<ServerChannel>();
  /** Dropped to make room for others, which is no offence. */
  let evicted = false;
  let progress: 0 | 1 | 2 = 0;
  const pending: PendingConnection = {
    source,
    progress: () => progress,
    drop: () => {
      evicted = true;
      socket.destroy();
    },
  };
  let client: Connection | undefined;
  let authentication: Authentication | undefined;
  let authenticated = false;
  let finishing = false;
  let sessions = 0;
  let offence: Offence | undefined;
  let idleTimer: NodeJS.Timeout | undefined;

  const disconnect = (): void => {
    client?.end();
    gone.abort();
    socket.end();
    setTimeout(() => socket.destroy(), lingerMilliseconds).unref();
  };
  const onViolation = (what: string): void => {
    log.warn('ssh connection exceeded a limit', { source, what });
    offence = 'broke-protocol';
    socket.destroy();
  };
  /** Without a session the connection may stay open for the idle time only. */
  const checkIdle = (): void => {
    clearTimeout(idleTimer);
    if (sessions > 0) return;
    if (finishing) return disconnect();
    idleTimer = setTimeout(disconnect, limits.idleSeconds * 1000).unref();
  };
  const run = (command: SessionCommand, login: Login): Promise<number> =>
    dependencies.handle({ ...command, ...login, requestId: newRequestId() });

  const onClient = (arrived: Connection): void => {
    client = arrived;
    progress = 1;
    arrived.once('handshake', () => {
      progress = 2;
    });
    authentication = authenticate(arrived, {
      sshKeys: dependencies.sshKeys,
      attempts: limits.authAttempts,
      clock,
      log,
      delayMilliseconds: () => penalties.delayMilliseconds(source),
      clientGone: gone.signal,
      disconnect,
    });
    dependencies.handshakes.schedule(socket, { authenticated: () => authenticated, gone: gone.signal });
    limitBuffers(socket, { authenticated: () => authenticated, channels, onViolation });
    arrived.on('ready', () => {
      authenticated = true;
      pendingConnections.remove(pending);
      penalties.loggedIn(source);
      const identity = authentication?.login()?.identity;
      log.info('ssh login', { source, user_id: identity?.userId, key: identity?.fingerprint });
      checkIdle();
    });
    arrived.on('session', (accept, reject) => {
      const login = authentication?.login();
      if (login === undefined || finishing || sessions >= limits.sessionsPerConnection) return reject();
      sessions += 1;
      clearTimeout(idleTimer);
      const session = accept() as unknown as ssh2.Session;
      session.on('close', () => {
        sessions -= 1;
        checkIdle();
      });
      serveSession(session, {
        client: arrived,
        socket,
        idleSeconds: limits.idleSeconds,
        connectionGone: gone.signal,
        run: (command) => run(command, login),
        onChannel: (channel) => {
          channels.add(channel);
          session.on('close', () => channels.delete(channel));
        },
        onError: (error) => {
          log.error('ssh session failed', { source, error });
          disconnect();
        },
        disconnect,
      });
    });
    // From here on ssh2 throws when written to; the socket itself may stay open a while longer.
    arrived.on('end', () => gone.abort());
    arrived.on('error', (error: Error) => {
      log.debug('ssh connection failed', { source, error });
      const failure = connectionFailure(error);
      if (failure === 'protocol-violation') offence = 'broke-protocol';
      // Nobody is there to read a last message, and ssh2 would wait for ever.
      if (failure === 'no-keepalive') socket.destroy();
      else disconnect();
    });
  };

  socket.setNoDelay(true);
  // ssh2 reports the errors that matter; an `error` event without a listener would end the process.
  socket.on('error', () => {});
  socket.once('close', () => {
    gone.abort();
    clearTimeout(idleTimer);
    pendingConnections.remove(pending);
    if (!authenticated && !finishing && !evicted)
      offence ??= (authentication?.failures ?? 0) > 0 ? 'login-failed' : 'left-without-login';
    if (offence === undefined) return;
    penalties.add(source, offence);
    log[offence === 'login-failed' ? 'info' : 'debug']('ssh connection ended badly', { source, offence });
  });
  clock.sleep(limits.loginGraceSeconds * 1000, gone.signal).then(
    () => {
      if (authenticated) return;
      offence = 'grace-exceeded';
      socket.destroy();
    },
    () => {},
  );
  pendingConnections.add(pending);
  // One ssh2 server per connection: it holds little, and ties the client to its socket.
  new ssh2.Server(dependencies.ssh, onClient).injectSocket(socket);

  return {
    finish: () => {
      finishing = true;
      if (authenticated) checkIdle();
      else socket.destroy();
    },
    destroy: () => socket.destroy(),
  };
}
