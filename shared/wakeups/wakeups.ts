/** Tells those who wait for a row to change that it may have; waiting also ends after a while, so a missed one costs time only. */
export interface Wakeups {
  wake(key: string): void;
  /** Resolves at the next `wake(key)`, after `milliseconds`, or when the signal aborts, whichever is first. */
  wait(key: string, milliseconds: number, signal?: AbortSignal): Promise<void>;
}

export interface LocalWakeups extends Wakeups {
  /** Whatever they wait for. */
  wakeAll(): void;
}

/** Within one process; another process notices by the time-out of its `wait`. */
export function createWakeups(): LocalWakeups {
  const waiting = new Map<string, Set<() => void>>();
  return {
    wake(key) {
      for (const resolve of waiting.get(key) ?? []) resolve();
    },
    wakeAll() {
      for (const waiters of [...waiting.values()]) for (const resolve of waiters) resolve();
    },
    wait(key, milliseconds, signal) {
      if (signal?.aborted === true) return Promise.resolve();
      return new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', done);
          const waiters = waiting.get(key);
          waiters?.delete(done);
          if (waiters?.size === 0) waiting.delete(key);
          resolve();
        };
        const timer = setTimeout(done, milliseconds);
        signal?.addEventListener('abort', done, { once: true });
        const waiters = waiting.get(key) ?? new Set();
        waiters.add(done);
        waiting.set(key, waiters);
      });
    },
  };
}
