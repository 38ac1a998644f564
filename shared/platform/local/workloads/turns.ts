/** Lets work on one key wait for earlier work on the same key; work on different keys does not meet. */
export interface Turns<Key> {
  /** Resolves when it is our turn, with the function that ends it. */
  take(key: Key): Promise<() => void>;
  run<T>(key: Key, work: () => Promise<T>): Promise<T>;
}

export function createTurns<Key>(): Turns<Key> {
  const last = new Map<Key, Promise<void>>();

  async function take(key: Key): Promise<() => void> {
    const before = last.get(key);
    const { promise, resolve } = Promise.withResolvers<void>();
    last.set(key, promise);
    await before;
    return () => {
      if (last.get(key) === promise) last.delete(key);
      resolve();
    };
  }

  return {
    take,
    async run(key, work) {
      const release = await take(key);
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}
