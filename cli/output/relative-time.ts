import { secondsPerDay, secondsPerHour, secondsPerMinute } from '#shared/durations.ts';

/** '3 s ago', '2 h ago', '5 d ago'. A time in the future is 'in 30 d'. */
export function relativeTime(time: string | Date, now: Date): string {
  const seconds = Math.round((now.getTime() - new Date(time).getTime()) / 1000);
  const amount = duration(Math.abs(seconds));
  if (seconds < 0) return `in ${amount}`;
  return seconds < 1 ? 'just now' : `${amount} ago`;
}

/** The largest unit that fits, rounded down: '59 s', '3 min', '23 h', '12 d'. */
export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < secondsPerHour) return `${Math.floor(seconds / secondsPerMinute)} min`;
  if (seconds < secondsPerDay) return `${Math.floor(seconds / secondsPerHour)} h`;
  return `${Math.floor(seconds / secondsPerDay)} d`;
}
