import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves after so long, or as soon as the signal aborts. */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal }).catch(() => undefined);
}

/** Asks again and again until the answer is true; false when it was not within the time. */
export async function pollUntil(isTrue: () => Promise<boolean>, seconds: number, everyMilliseconds = 250): Promise<boolean> {
  const signal = AbortSignal.timeout(seconds * 1000);
  while (!signal.aborted) {
    if (await isTrue()) return true;
    await pause(everyMilliseconds, signal);
  }
  return false;
}
