/** Lets tasks on one key run one after the other, in the order of their calls; tasks on different keys run independently. */
export interface KeyedMutex<Key> {
  /** Resolves when all earlier holders of the key have unlocked it, with the function that unlocks it. */
  lock(key: Key): Promise<() => void>;
  /** Runs `task` with the key locked. Settles as the task does. */
  run<Result>(key: Key, task: () => Promise<Result>): Promise<Result>;
}

/** @returns a mutex within this process; it holds no memory for keys that nobody has locked */
export function createKeyedMutex<Key>(): KeyedMutex<Key> {
  const last = new Map<Key, Promise<void>>();

  async function lock(key: Key): Promise<() => void> {
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
    lock,
    async run(key, task) {
      const unlock = await lock(key);
      try {
        return await task();
      } finally {
        unlock();
      }
    },
  };
}
