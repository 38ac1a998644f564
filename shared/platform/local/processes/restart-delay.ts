const firstDelaySeconds = 1;
const longestDelaySeconds = 60;

/**
 * How long to wait before a program that ended by itself is started again.
 * @param crashesInARow from 1
 * @returns seconds: 1, 2, 4 … 60
 */
export function planRestartDelay(crashesInARow: number): number {
  return Math.min(longestDelaySeconds, firstDelaySeconds * 2 ** Math.min(10, crashesInARow - 1));
}
