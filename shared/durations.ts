/** Lengths of time, with the unit in each name, and arithmetic on dates. */

export const secondsPerMinute = 60;
export const secondsPerHour = 60 * secondsPerMinute;
export const secondsPerDay = 24 * secondsPerHour;

export const millisecondsPerSecond = 1000;
export const millisecondsPerMinute = secondsPerMinute * millisecondsPerSecond;
export const millisecondsPerHour = secondsPerHour * millisecondsPerSecond;
export const millisecondsPerDay = secondsPerDay * millisecondsPerSecond;

/** The time so many seconds after `date`; before it, when they are negative. */
export function addSeconds(date: Date, seconds: number): Date {
  return new Date(date.getTime() + seconds * millisecondsPerSecond);
}
