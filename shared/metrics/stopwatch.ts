/** Seconds since it was started. */
export type Stopwatch = () => number;

/** Returns a function that tells the seconds since. */
export function startStopwatch(): Stopwatch {
  const begun = performance.now();
  return () => (performance.now() - begun) / 1000;
}
