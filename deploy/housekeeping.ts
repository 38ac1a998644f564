import type { Log } from '#shared/log.ts';

export interface Chore {
  name: string;
  /** Removes what is of no use any more; again is harmless, and several processes may do it at once. */
  sweep(): Promise<unknown>;
}

const intervalMilliseconds = 60 * 60 * 1000;

/** Does the chores every hour, one after the other. A failed one is logged, and tried again an hour later. */
export function startHousekeeping(chores: readonly Chore[], log: Log): { stop(): void } {
  const round = async (): Promise<void> => {
    for (const chore of chores) {
      try {
        await chore.sweep();
      } catch (error) {
        log.warn('A chore failed.', { chore: chore.name, error });
      }
    }
  };
  const timer = setInterval(() => void round(), intervalMilliseconds);
  return { stop: () => clearInterval(timer) };
}
