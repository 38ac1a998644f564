import type { Clock } from '#shared/clock.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import type { SshLimits } from './ssh-limits.ts';

/** What a connection did that an honest one rarely does. */
export type Offence = 'left-without-login' | 'login-failed' | 'grace-exceeded' | 'broke-protocol';

const points: Readonly<Record<Offence, number>> = {
  'left-without-login': 1,
  'login-failed': 5,
  'grace-exceeded': 5,
  'broke-protocol': 10,
};

const slowestMilliseconds = 3000;
const mostPoints = 600;
/** Sources remembered; beyond that the least recently changed one is forgotten. */
const rememberedSources = 10_000;

/** How long after a login a source is not refused. */
const trustedMilliseconds = millisecondsPerHour;

interface SourceRecord {
  readonly score: number;
  /** When it had that score, in milliseconds. */
  readonly at: number;
  /** Last login in milliseconds, 0 for none. */
  readonly loginAt: number;
}

/**
 * Penalty points for sources that misbehave; one point expires each second. With many points answers are delayed, with more
 * connections are refused. Points are counted by source, so that one address does not affect another. A source from which
 * somebody logged in within the last hour is delayed but not refused: one broken script must not lock out its whole office.
 */
export class Penalties {
  readonly #limits: Pick<SshLimits, 'slowFromPoints' | 'refuseFromPoints'>;
  readonly #clock: Clock;
  /** In order of the last change. */
  readonly #records = new Map<string, SourceRecord>();

  constructor(limits: Pick<SshLimits, 'slowFromPoints' | 'refuseFromPoints'>, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Sources remembered. */
  get size(): number {
    return this.#records.size;
  }

  /** Adds the points of an offence. */
  add(source: string, offence: Offence): void {
    const score = Math.min(mostPoints, this.#score(source) + points[offence]);
    this.#put(source, { score, at: this.#now(), loginAt: this.#records.get(source)?.loginAt ?? 0 });
  }

  /** To be called when somebody has logged in from the source. */
  loggedIn(source: string): void {
    this.#put(source, { score: this.#score(source), at: this.#now(), loginAt: this.#now() });
  }

  /** Seconds until the source may connect again; 0 when it may now. */
  refusedForSeconds(source: string): number {
    const over = this.#score(source) - this.#limits.refuseFromPoints;
    const trusted = this.#now() - (this.#records.get(source)?.loginAt ?? 0) < trustedMilliseconds;
    return over < 0 || trusted ? 0 : Math.max(1, Math.ceil(over));
  }

  /** How long the answer to a failed login is delayed. */
  delayMilliseconds(source: string): number {
    const over = this.#score(source) - this.#limits.slowFromPoints;
    return over <= 0 ? 0 : Math.min(slowestMilliseconds, over * 100);
  }

  #score(source: string): number {
    const record = this.#records.get(source);
    return record === undefined ? 0 : Math.max(0, record.score - (this.#now() - record.at) / 1000);
  }

  #put(source: string, record: SourceRecord): void {
    this.#records.delete(source);
    this.#records.set(source, record);
    if (this.#records.size <= rememberedSources) return;
    const [oldest] = this.#records.keys();
    if (oldest !== undefined) this.#records.delete(oldest);
  }

  #now(): number {
    return this.#clock.now().getTime();
  }
}
