/** Lets a number of works run at once; the others wait, first come first served. */
export interface Slots {
  /**
   * Resolves when there is room, with the function that gives the slot back.
   * @throws the signal's reason when it aborts before that
   */
  take(signal: AbortSignal): Promise<() => void>;
}

/** @param count works at once */
export function createSlots(count: number): Slots {
  let free = count;
  const waiting: (() => void)[] = [];

  const giveBack = (): void => {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  };
  return {
    async take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free -= 1;
        return giveBack;
      }
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const leave = (): void => {
        waiting.splice(waiting.indexOf(resolve), 1);
        reject(signal.reason as Error);
      };
      waiting.push(resolve);
      signal.addEventListener('abort', leave, { once: true });
      void promise.then(
        () => signal.removeEventListener('abort', leave),
        () => undefined,
      );
      await promise;
      return giveBack;
    },
  };
}
