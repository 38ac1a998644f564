import { counted } from '#shared/counted.ts';
import { secondsPerMinute } from '#shared/durations.ts';

/** '2 seconds', '1 minute', '15 minutes'. */
export function describeDuration(seconds: number): string {
  if (seconds % secondsPerMinute !== 0) return counted(seconds, 'second');
  return counted(seconds / secondsPerMinute, 'minute');
}
