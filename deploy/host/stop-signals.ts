/** npm passes a terminal's Ctrl-C on to a process that got it already: copies within this time are one request. */
const sameRequestMilliseconds = 1000;

/**
 * Calls `stop` at the first SIGINT, SIGTERM or SIGHUP, and `insist` when somebody asks again while it is still stopping.
 * Both at most once.
 */
export function onStopSignal(stop: (signal: NodeJS.Signals) => void, insist: (signal: NodeJS.Signals) => void): void {
  let askedAt: number | undefined;
  let insisted = false;
  const asked = (signal: NodeJS.Signals): void => {
    const now = performance.now();
    if (askedAt === undefined) {
      askedAt = now;
      stop(signal);
    } else if (!insisted && now - askedAt > sameRequestMilliseconds) {
      insisted = true;
      insist(signal);
    }
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, asked);
  // After a SIGHUP the terminal is gone: writing to it fails, and must not cut the orderly stop short.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
}
