import type { Clock } from '#shared/clock.ts';

interface Sleeper {
  wakesAt: number;
  wake(): void;
}

/** The twin of the system's clock: time stands still until `advance`. */
export class ManualClock implements Clock {
  private time: number;
  private sleepers: Sleeper[] = [];

  constructor(start = new Date('2026-01-01T00:00:00.000Z')) {
    this.time = start.getTime();
  }

  now(): Date {
    return new Date(this.time);
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const sleeper: Sleeper = { wakesAt: this.time + milliseconds, wake: resolve };
      this.sleepers.push(sleeper);
      signal?.addEventListener(
        'abort',
        () => {
          this.sleepers = this.sleepers.filter((other) => other !== sleeper);
          reject(signal.reason as Error);
        },
        { once: true },
      );
    });
  }

  /** Moves time on, and wakes who slept until then, earliest first. */
  advance(milliseconds: number): void {
    this.time += milliseconds;
    const due = this.sleepers
      .filter((sleeper) => sleeper.wakesAt <= this.time)
      .toSorted((one, other) => one.wakesAt - other.wakesAt);
    this.sleepers = this.sleepers.filter((sleeper) => sleeper.wakesAt > this.time);
    for (const sleeper of due) sleeper.wake();
  }
}
