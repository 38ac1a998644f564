/** Seconds since it was started. */
export type Stopwatch = () => number;

export function startStopwatch(): Stopwatch {
  const begun = performance.now();
  return () => (performance.now() - begun) / 1000;
}
