/** Port: the current time, injected so that tests can control it. */
export interface Clock {
  now(): Date;
  /** Resolves after `milliseconds`, or rejects with the signal's reason as soon as it aborts. */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of the operating system. */
export const systemClock: Clock = {
  now: () => new Date(),
  sleep(milliseconds, signal) {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted();
      const end = (): void => {
        clearTimeout(timer);
        reject(signal?.reason as Error);
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', end);
        resolve();
      }, milliseconds);
      signal?.addEventListener('abort', end, { once: true });
    });
  },
};
