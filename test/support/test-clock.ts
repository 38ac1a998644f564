import { type Clock, systemClock } from '#shared/clock.ts';

interface Sleeper {
  wakesAt: number;
  wake(): void;
}

/** A clock that a test moves. */
export class TestClock implements Clock {
  /** Undefined: time passes as on the system's clock. */
  readonly #standsAt: number | undefined;
  #advanced = 0;
  #sleepers: Sleeper[] = [];

  private constructor(standsAt: number | undefined) {
    this.#standsAt = standsAt;
  }

  /** Time stands still until `advance`. */
  static standing(start = new Date('2026-01-01T00:00:00.000Z')): TestClock {
    return new TestClock(start.getTime());
  }

  /** Time also passes as on the system's clock, for tests in which another program or the database reads that one. */
  static running(): TestClock {
    return new TestClock(undefined);
  }

  now(): Date {
    return new Date((this.#standsAt ?? Date.now()) + this.#advanced);
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    const awake = new AbortController();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleeper: Sleeper = { wakesAt: this.now().getTime() + milliseconds, wake: resolve };
    this.#sleepers.push(sleeper);
    signal?.addEventListener('abort', () => reject(signal.reason as Error), { signal: awake.signal });
    if (this.#standsAt === undefined) systemClock.sleep(milliseconds, awake.signal).then(resolve, () => undefined);
    try {
      await promise;
    } finally {
      awake.abort();
      this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
    }
  }

  /** Moves time on, or back, and wakes those who slept until then, earliest first. */
  advance(milliseconds: number): void {
    this.#advanced += milliseconds;
    const now = this.now().getTime();
    const due = this.#sleepers.filter(({ wakesAt }) => wakesAt <= now).toSorted((one, other) => one.wakesAt - other.wakesAt);
    for (const { wake } of due) wake();
  }
}
