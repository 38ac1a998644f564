import { Logger } from 'graphile-worker';
import type { Log } from '#shared/log.ts';

/** graphile-worker is talkative: its own failures are ours to know, the rest is for debugging. */
export function workerLogger(log: Log): Logger {
  return new Logger(() => (level, message) => {
    if (level === 'error' || level === 'warning') log.debug(`graphile-worker: ${message}`);
  });
}
