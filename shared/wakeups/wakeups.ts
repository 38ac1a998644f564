/**
 * Port: notifies waiters that a row may have changed. A wait also ends after its time, so that a missed notification costs time
 * only.
 */
export interface Wakeups {
  /** Ends every wait for the key, in every process that shares the driver. Never throws. */
  wake(key: string): void;
  /** Resolves at the next `wake(key)`, after `milliseconds`, or when the signal aborts, whichever comes first. Never rejects. */
  wait(key: string, milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** Wakeups of one process. */
export interface LocalWakeups extends Wakeups {
  /** Ends all waits. */
  wakeAll(): void;
}

/** Wakeups within one process; other processes notice a change when their `wait` times out. */
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
