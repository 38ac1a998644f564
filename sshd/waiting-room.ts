import type { Clock } from '#shared/clock.ts';
import type { SshLimits } from './limits.ts';

/** A connection that has not logged in yet. */
export interface Guest {
  readonly source: string;
  /** How far it has come: 0 connected, 1 said who it is, 2 exchanged keys. */
  progress(): number;
  /** Ends the connection at once. */
  drop(): void;
}

/** A login takes a fraction of a second; who needs more than this at a full door is likely not here to log in. */
const lingersAfterMilliseconds = 3000;

/**
 * Bounds the connections that have not logged in. Unlike OpenSSH's MaxStartups it never turns away the newcomer, who may
 * be honest, but whoever has come least far and sat there longest, of the source that has most guests: a thousand clients that send
 * a byte at a time push each other out, and a real push passes between them.
 */
export class WaitingRoom {
  readonly #limits: SshLimits;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** In the order of arrival. */
  readonly #guests = new Map<Guest, number>();

  constructor(limits: SshLimits, clock: Clock, random: () => number = Math.random) {
    this.#limits = limits;
    this.#clock = clock;
    this.#random = random;
  }

  get size(): number {
    return this.#guests.size;
  }

  enter(guest: Guest): void {
    const victim = this.#victim();
    if (victim !== undefined) {
      this.#guests.delete(victim);
      victim.drop();
    }
    this.#guests.set(guest, this.#clock.now().getTime());
  }

  leave(guest: Guest): void {
    this.#guests.delete(guest);
  }

  #victim(): Guest | undefined {
    const { unauthenticatedSoftCap: soft, unauthenticatedHardCap: hard, unauthenticatedDropRatio: ratio } = this.#limits;
    const count = this.#guests.size;
    if (count < soft) return undefined;
    const [guest, since] = this.#oldestOfTheMany();
    if (count >= hard) return guest;
    const lingers = this.#clock.now().getTime() - since >= lingersAfterMilliseconds;
    const probability = ratio + ((1 - ratio) * (count - soft)) / (hard - soft);
    return lingers && this.#random() < probability ? guest : undefined;
  }

  #oldestOfTheMany(): [guest: Guest | undefined, since: number] {
    const counts = new Map<string, number>();
    for (const { source } of this.#guests.keys()) counts.set(source, (counts.get(source) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const crowd = [...this.#guests].filter(([{ source }]) => counts.get(source) === most);
    const least = Math.min(...crowd.map(([guest]) => guest.progress()));
    return crowd.find(([guest]) => guest.progress() === least) ?? [undefined, 0];
  }
}
