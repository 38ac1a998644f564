/** Resolves after so long, or as soon as the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done(): void {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
    if (signal.aborted) done();
  });
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
