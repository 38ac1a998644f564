import type { Lifetime } from '#deploy/parts/lifetime.ts';
import { millisecondsPerHour } from '#shared/durations.ts';
import type { Log } from '#shared/log.ts';

/** A part of the platform's own maintenance. */
export interface HousekeepingTask {
  /** For the log. */
  name: string;
  /** Removes what is not needed any more, or renews what is old. Idempotent; several processes may run it at the same time. */
  sweep(): Promise<unknown>;
}

/**
 * Runs the tasks now and every hour, one after the other: also a platform that is up for less than an hour a day runs them. One
 * that fails is logged, and run again an hour later. The end waits for the task that is running.
 */
export function startHousekeeping(lifetime: Lifetime, tasks: readonly HousekeepingTask[], log: Log): void {
  let ended = false;
  const runTasks = async (): Promise<void> => {
    for (const { name, sweep } of tasks) {
      if (ended) return;
      try {
        await sweep();
      } catch (error) {
        log.warn('A housekeeping task failed.', { task: name, error });
      }
    }
  };
  let round = runTasks();
  const timer = setInterval(() => {
    // A round that takes longer than an hour is not overtaken by the next.
    round = round.then(runTasks);
  }, millisecondsPerHour);
  lifetime.onEnd(() => {
    ended = true;
    clearInterval(timer);
    return round;
  });
}
