import type { Server, Socket } from 'node:net';
import { plainAddress } from '#gateway/forwarding/client.ts';
import { secondsPerMinute } from '#shared/durations.ts';
import type { Log } from '#shared/log.ts';
import { sourceKey } from '#shared/rate-limits/source-key.ts';
import { countUntilClosed } from './count-until-closed.ts';

export interface SourceConnectionsOptions {
  /** Open connections of one source: an IPv4 address, or the /64 network of an IPv6 address. */
  readonly most: number;
  /** Open connections of all sources together. */
  readonly mostOfAll: number;
  /** Whether connections from the address are not limited. @param address as `plainAddress` returns it */
  readonly isExempt: (address: string) => boolean;
  readonly now: () => Date;
  readonly log: Pick<Log, 'warn'>;
}

/** Limits the connections to all of its servers together: those of one source, and those of all. */
export interface SourceConnections {
  /**
   * To be called before the server listens. One connection too many of all is closed at once.
   * @param refuse gets one too many of a source; by default it is closed at once
   */
  limit(server: Server, refuse?: (socket: Socket) => void): void;
  /** Connections that could still be opened. */
  readonly free: number;
  /** Sources with open connections. */
  readonly size: number;
}

const warningSeconds = secondsPerMinute;

/** Counts the open connections of each source. */
export function limitSources({ most, mostOfAll, isExempt, now, log }: SourceConnectionsOptions): SourceConnections {
  const counts = new Map<string, number>();
  let all = 0;
  let warnAt = 0;

  const admit = (socket: Socket): boolean => {
    const address = plainAddress(socket.remoteAddress);
    if (isExempt(address)) return true;
    const source = sourceKey(address);
    if ((counts.get(source) ?? 0) >= most) {
      if (now().getTime() >= warnAt) {
        warnAt = now().getTime() + warningSeconds * 1000;
        log.warn('a source has too many connections, see PAAS_CONNECTIONS_PER_ADDRESS and PAAS_TRUSTED_PROXIES', {
          source,
          most,
        });
      }
      return false;
    }
    countUntilClosed(counts, source, socket);
    return true;
  };

  return {
    limit(server, refuse = (socket) => void socket.destroy()) {
      const listeners = server.listeners('connection');
      server.removeAllListeners('connection');
      server.on('connection', (socket: Socket) => {
        if (all >= mostOfAll) return void socket.destroy();
        all += 1;
        socket.once('close', () => {
          all -= 1;
        });
        if (!admit(socket)) return refuse(socket);
        for (const listener of listeners) listener.call(server, socket);
      });
    },
    get free() {
      return mostOfAll - all;
    },
    get size() {
      return counts.size;
    },
  };
}
