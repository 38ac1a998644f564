import type { Clock } from '#shared/clock.ts';
import type { SshLimits } from './limits.ts';

/** What a connection did that an honest one does not. */
export type Offence = 'left-without-login' | 'login-failed' | 'grace-exceeded' | 'broke-protocol';

const points: Readonly<Record<Offence, number>> = {
  'left-without-login': 1,
  'login-failed': 5,
  'grace-exceeded': 5,
  'broke-protocol': 10,
};

const slowestMilliseconds = 3000;
const mostPoints = 600;
/** Sources remembered; beyond it the one whose last offence is longest ago is forgotten. */
const sourcesKept = 10_000;

/**
 * Who misbehaves collects points, which fade by one a second: first the answers get slow, then connections are refused.
 * Kept by source, so that one address costs another nothing.
 */
export class Penalties {
  readonly #limits: Pick<SshLimits, 'slowFromPoints' | 'refuseFromPoints'>;
  readonly #clock: Clock;
  readonly #scores = new Map<string, { score: number; at: number }>();

  constructor(limits: Pick<SshLimits, 'slowFromPoints' | 'refuseFromPoints'>, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Sources remembered. */
  get size(): number {
    return this.#scores.size;
  }

  add(source: string, offence: Offence): void {
    const score = Math.min(mostPoints, this.#score(source) + points[offence]);
    // Taken out first, so that the map stays in the order of the last offence.
    this.#scores.delete(source);
    this.#scores.set(source, { score, at: this.#clock.now().getTime() });
    if (this.#scores.size <= sourcesKept) return;
    const [longestAgo] = this.#scores.keys();
    if (longestAgo !== undefined) this.#scores.delete(longestAgo);
  }

  /** Seconds until the source may connect again; 0 when it may now. */
  refusedForSeconds(source: string): number {
    const over = this.#score(source) - this.#limits.refuseFromPoints;
    return over < 0 ? 0 : Math.max(1, Math.ceil(over));
  }

  /** How late a failed login is answered. */
  delayMilliseconds(source: string): number {
    const over = this.#score(source) - this.#limits.slowFromPoints;
    return over <= 0 ? 0 : Math.min(slowestMilliseconds, over * 100);
  }

  #score(source: string): number {
    const entry = this.#scores.get(source);
    if (entry === undefined) return 0;
    return Math.max(0, entry.score - (this.#clock.now().getTime() - entry.at) / 1000);
  }
}
