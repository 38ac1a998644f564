import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '#deploy/host/start-error.ts';

/** Something that another process does. */
export interface Wait {
  isThere(): Promise<boolean>;
  /** 'Waiting for' this, as the operator reads it; without a full stop. */
  what: string;
  report(line: string): void;
  /** Ends the wait. */
  stopping: AbortSignal;
}

const pollMilliseconds = 200;

/**
 * Resolves once it is there. Reports once that it waits, and for what.
 * @throws StartError when the process was asked to end before
 */
export async function waitFor({ isThere, what, report, stopping }: Wait): Promise<void> {
  for (let waits = 0; !(await isThere()); waits += 1) {
    if (waits === 0) report(`-----> Waiting for ${what}.`);
    await sleep(pollMilliseconds, undefined, { signal: stopping }).catch(() => undefined);
    if (stopping.aborted) throw stoppedEarly();
  }
}

/** For a start that was asked to end while it waited. */
export function stoppedEarly(): StartError {
  return new StartError('Stopped before the start was complete.');
}
