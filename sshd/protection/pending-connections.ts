import type { Clock } from '#shared/clock.ts';
import type { SshLimits } from './ssh-limits.ts';

/** A connection that has not logged in yet. */
export interface Guest {
  readonly source: string;
  /** How far it has come: 0 connected, 1 said who it is, 2 exchanged keys. */
  progress(): 0 | 1 | 2;
  /** Ends the connection at once. */
  drop(): void;
}

/** A login takes a fraction of a second; who needs more than this at a full door is likely not here to log in. */
const lingersAfterMilliseconds = 3000;

/** How much later than those who have come least far a guest's turn to go comes, by how far it has come. */
const patienceMilliseconds = [0, 1000, 5000] as const;

/**
 * Bounds the connections that have not logged in. Unlike OpenSSH's MaxStartups it never turns away the newcomer, who may
 * be honest, but whoever has sat there longest for how far it has come, of the source that has most guests: a thousand clients
 * that send a byte at a time push each other out, and a real push passes between them. Having come far counts only for a
 * while: a crowd that stops in the middle of its key exchanges must not make newcomers push each other out.
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
    if (count === 0 || count < soft) return undefined;
    const [guest, since] = this.#longestOfTheMany();
    if (count >= hard) return guest;
    const lingers = this.#clock.now().getTime() - since >= lingersAfterMilliseconds;
    const probability = ratio + ((1 - ratio) * (count - soft)) / (hard - soft);
    return lingers && this.#random() < probability ? guest : undefined;
  }

  /** There must be a guest. */
  #longestOfTheMany(): [guest: Guest, since: number] {
    const counts = new Map<string, number>();
    for (const { source } of this.#guests.keys()) counts.set(source, (counts.get(source) ?? 0) + 1);
    const most = Math.max(...counts.values());
    const crowd = [...this.#guests].filter(([{ source }]) => counts.get(source) === most);
    const dueAt = ([guest, since]: (typeof crowd)[number]): number => since + (patienceMilliseconds[guest.progress()] ?? 0);
    return crowd.reduce((first, each) => (dueAt(each) < dueAt(first) ? each : first));
  }
}
