import type { Socket } from 'node:net';
import ssh2, { type Connection, type ServerChannel, type ServerConfig } from 'ssh2';
import type { Clock } from '#shared/clock.ts';
import type { SshKeys } from '#shared/core/accounts/accounts.ts';
import type { Log } from '#shared/log.ts';
import type { CommandHandler } from '../commands/command-handler.ts';
import { type Authentication, authenticate, type Login } from '../login/authentication.ts';
import { guardFlow } from '../protection/buffer-limits.ts';
import type { HandshakeTurns } from '../protection/handshake-scheduler.ts';
import type { Offence, Penalties } from '../protection/penalties.ts';
import type { WaitingRoom } from '../protection/pending-connections.ts';
import type { SshLimits } from '../protection/ssh-limits.ts';
import { type SessionCommand, serveSession } from './session.ts';

/** What every connection of one server shares. */
export interface House {
  readonly ssh: ServerConfig;
  readonly sshKeys: Pick<SshKeys, 'resolveKey'>;
  readonly handle: CommandHandler;
  readonly waitingRoom: WaitingRoom;
  readonly handshakeTurns: HandshakeTurns;
  readonly penalties: Penalties;
  readonly limits: SshLimits;
  readonly clock: Clock;
  readonly log: Log;
}

export interface LiveConnection {
  /** Ends when its commands have; no new ones are taken. */
  finish(): void;
  destroy(): void;
}

/** How long a client may take to read the last words. */
const farewellMilliseconds = 2000;

/** Serves one TCP connection until it is closed. */
export function serveConnection(socket: Socket, source: string, house: House): LiveConnection {
  const { limits, clock, log } = house;
  /** Aborted as soon as nothing can reach the client any more. */
  const gone = new AbortController();
  const channels = new Set<ServerChannel>();
  /** Dropped for want of room, which is no offence. */
  let evicted = false;
  let progress: 0 | 1 | 2 = 0;
  const guest = {
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

  const hangUp = (): void => {
    client?.end();
    gone.abort();
    socket.end();
    setTimeout(() => socket.destroy(), farewellMilliseconds).unref();
  };
  const violated = (what: string): void => {
    log.warn('ssh connection broke the rules', { source, what });
    offence = 'broke-protocol';
    socket.destroy();
  };
  const rest = (): void => {
    clearTimeout(idleTimer);
    if (sessions > 0) return;
    if (finishing) return hangUp();
    idleTimer = setTimeout(hangUp, limits.idleSeconds * 1000).unref();
  };
  const run = (command: SessionCommand, login: Login): Promise<number> => {
    const requestId = `req_${crypto.randomUUID().replaceAll('-', '')}`;
    return house.handle({ ...command, ...login, requestId });
  };

  const welcome = (arrived: Connection): void => {
    client = arrived;
    progress = 1;
    arrived.once('handshake', () => {
      progress = 2;
    });
    authentication = authenticate(arrived, {
      sshKeys: house.sshKeys,
      attempts: limits.authAttempts,
      clock,
      log,
      delayMilliseconds: () => house.penalties.delayMilliseconds(source),
      gone: gone.signal,
      hangUp,
    });
    house.handshakeTurns.pace(socket, { authenticated: () => authenticated, gone: gone.signal });
    guardFlow(socket, { authenticated: () => authenticated, channels, violated });
    arrived.on('ready', () => {
      authenticated = true;
      house.waitingRoom.leave(guest);
      house.penalties.loggedIn(source);
      const identity = authentication?.login()?.identity;
      log.info('ssh login', { source, user_id: identity?.userId, key: identity?.fingerprint });
      rest();
    });
    arrived.on('session', (accept, reject) => {
      const login = authentication?.login();
      if (login === undefined || finishing || sessions >= limits.sessionsPerConnection) return reject();
      sessions += 1;
      clearTimeout(idleTimer);
      const session = accept() as unknown as ssh2.Session;
      session.on('close', () => {
        sessions -= 1;
        rest();
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
        onFault: (error) => {
          log.error('ssh session failed', { source, error });
          hangUp();
        },
        hangUp,
      });
    });
    // From here on ssh2 throws at whoever writes; the socket's own end may take a while longer.
    arrived.on('end', () => gone.abort());
    arrived.on('error', (error: Error & { level?: string }) => {
      log.debug('ssh connection failed', { source, error });
      if (error.level === 'protocol') offence = 'broke-protocol';
      // After a keepalive time-out nobody is there to read a farewell, and ssh2 would wait for ever.
      if (error.level === 'client-timeout') socket.destroy();
      else hangUp();
    });
  };

  socket.setNoDelay(true);
  // ssh2 reports what matters; a socket without any listener would end the process.
  socket.on('error', () => {});
  socket.once('close', () => {
    gone.abort();
    clearTimeout(idleTimer);
    house.waitingRoom.leave(guest);
    if (!authenticated && !finishing && !evicted)
      offence ??= (authentication?.failures ?? 0) > 0 ? 'login-failed' : 'left-without-login';
    if (offence === undefined) return;
    house.penalties.add(source, offence);
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
  house.waitingRoom.enter(guest);
  // One ssh2 server a connection: it is a parser's worth of state, and ties the client to its socket.
  new ssh2.Server(house.ssh, welcome).injectSocket(socket);

  return {
    finish: () => {
      finishing = true;
      if (authenticated) rest();
      else socket.destroy();
    },
    destroy: () => socket.destroy(),
  };
}
