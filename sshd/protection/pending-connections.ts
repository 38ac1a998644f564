import type { Clock } from '#shared/clock.ts';
import type { SshLimits } from './ssh-limits.ts';

/** A connection that has not logged in yet. */
export interface PendingConnection {
  /** As `sourceOf` names it. */
  readonly source: string;
  /** How far the handshake is: 0 connected, 1 identification string received, 2 keys exchanged. */
  progress(): 0 | 1 | 2;
  /** Closes the connection at once. */
  drop(): void;
}

/** A login takes a fraction of a second. Between the caps, only a connection that has taken longer than this is dropped. */
const slowAfterMilliseconds = 3000;

/** By progress: how much longer a connection is kept than one that has only connected. */
const extraMilliseconds = [0, 1000, 5000] as const;

/**
 * Limits the connections that have not logged in. Unlike OpenSSH's MaxStartups it never refuses the newcomer, who may be
 * honest. It drops the oldest connection of the source that has most of them. So a thousand clients that send a byte at a
 * time displace each other, and a real push gets through. Progress in the handshake counts as extra time and no more:
 * otherwise a crowd that stops in the middle of the key exchange would make newcomers displace each other.
 */
export class PendingConnections {
  readonly #limits: SshLimits;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** Times of arrival in milliseconds, in that order. */
  readonly #pending = new Map<PendingConnection, number>();

  /** @param random as `Math.random` */
  constructor(limits: SshLimits, clock: Clock, random: () => number = Math.random) {
    this.#limits = limits;
    this.#clock = clock;
    this.#random = random;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Adds a connection, and drops another where the limits demand it. */
  add(connection: PendingConnection): void {
    const victim = this.#chooseVictim();
    if (victim !== undefined) {
      this.#pending.delete(victim);
      victim.drop();
    }
    this.#pending.set(connection, this.#clock.now().getTime());
  }

  /** To be called when a connection has logged in or is closed. */
  remove(connection: PendingConnection): void {
    this.#pending.delete(connection);
  }

  #chooseVictim(): PendingConnection | undefined {
    const { unauthenticatedSoftCap: soft, unauthenticatedHardCap: hard, unauthenticatedDropRatio: ratio } = this.#limits;
    const count = this.#pending.size;
    if (count === 0 || count < soft) return undefined;
    const [connection, since] = this.#oldestOfLargestSource();
    if (count >= hard) return connection;
    const isSlow = this.#clock.now().getTime() - since >= slowAfterMilliseconds;
    const probability = ratio + ((1 - ratio) * (count - soft)) / (hard - soft);
    return isSlow && this.#random() < probability ? connection : undefined;
  }

  /** There must be a connection. */
  #oldestOfLargestSource(): [connection: PendingConnection, since: number] {
    const counts = new Map<string, number>();
    for (const { source } of this.#pending.keys()) counts.set(source, (counts.get(source) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const candidates = [...this.#pending].filter(([{ source }]) => counts.get(source) === most);
    const dueAt = ([connection, since]: (typeof candidates)[number]): number =>
      since + (extraMilliseconds[connection.progress()] ?? 0);
    return candidates.reduce((first, each) => (dueAt(each) < dueAt(first) ? each : first));
  }
}
