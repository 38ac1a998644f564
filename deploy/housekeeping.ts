import type { Log } from '#shared/log.ts';

export interface Chore {
  name: string;
  /** Removes what is of no use any more, or renews what has aged; again is harmless, and several processes may do it at once. */
  sweep(): Promise<unknown>;
}

const intervalMilliseconds = 60 * 60 * 1000;

/**
 * Does the chores now and every hour, one after the other: a platform that is up for less than an hour a day has them done
 * too. A failed one is logged, and tried again an hour later. `stop` waits for the chore that is being done.
 */
export function startHousekeeping(chores: readonly Chore[], log: Log): { stop(): Promise<void> } {
  let stopped = false;
  const doChores = async (): Promise<void> => {
    for (const chore of chores) {
      if (stopped) return;
      try {
        await chore.sweep();
      } catch (error) {
        log.warn('A chore failed.', { chore: chore.name, error });
      }
    }
  };
  let round = doChores();
  const timer = setInterval(() => {
    // A round that takes longer than an hour is not overtaken by the next.
    round = round.then(doChores);
  }, intervalMilliseconds);
  return {
    stop() {
      stopped = true;
      clearInterval(timer);
      return round;
    },
  };
}
