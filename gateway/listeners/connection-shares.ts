import type { EventEmitter } from 'node:events';
import { readFileSync } from 'node:fs';
import { countUntilClosed } from './count-until-closed.ts';

/** Connections of clients at once, where the process may have as many files open. */
const mostConnections = 20_000;
/** Each request in flight has a connection to its app as well; the rest is for certificates, routes and idle connections. */
const connectionsPerFile = 0.45;

/** Connections of clients that this process has room for. More are closed as soon as they arrive. */
export function roomForConnections(): number {
  // Linux. The soft limit: Node.js and Bun raise it to the hard one at their start.
  const [, files = '0'] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
  const most = Math.floor(Number(files) * connectionsPerFile);
  return most === 0 ? mostConnections : Math.min(mostConnections, most);
}

/** Who may have how many of the connections. */
export interface ConnectionShares {
  /**
   * Takes a place for a request, until `connection` closes.
   * @param destination whose request it is
   * @returns false if the destination has its share: then nothing is taken
   */
  take(destination: string, connection: EventEmitter): boolean;
}

/**
 * Each destination may have as many requests in flight as connections are free: one alone up to half of all, and a tenth each if nine
 * want more. However many an app has open, others have room (the dynamic threshold of shared buffers in switches).
 * @param free connections that could still be opened
 */
export function shareConnections(free: () => number): ConnectionShares {
  const counts = new Map<string, number>();
  return {
    take(destination, connection) {
      // The connection that asks is none of the free ones.
      if ((counts.get(destination) ?? 0) > free()) return false;
      countUntilClosed(counts, destination, connection);
      return true;
    },
  };
}
