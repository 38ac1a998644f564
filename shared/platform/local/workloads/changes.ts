/** Lets watchers wait until something changes, without missing a change between their look at it and the wait. */
export interface Changes {
  /** Number of changes so far. */
  readonly count: number;
  notify(): void;
  /** Resolves once `count` differs from `seen`, after `milliseconds`, or when the signal aborts, whichever is first. */
  wait(seen: number, milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** Within this process. */
export function createChanges(): Changes {
  let count = 0;
  const waiting = new Set<() => void>();
  return {
    get count() {
      return count;
    },
    notify() {
      count += 1;
      for (const resolve of waiting) resolve();
    },
    wait(seen, milliseconds, signal) {
      if (count !== seen || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          waiting.delete(end);
          resolve();
        };
        const timer = setTimeout(end, milliseconds);
        signal.addEventListener('abort', end, { once: true });
        waiting.add(end);
      });
    },
  };
}
