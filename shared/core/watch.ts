import type { Context } from '#shared/core/context.ts';

export interface Watch {
  /** What to look at again: a wakeup's key, and how late it is noticed without one. */
  key: string;
  milliseconds: number;
  /** Why the work is to end, once it is. */
  findReason(): Promise<Error | undefined>;
}

/**
 * Aborts `signal` with the reason as soon as there is one. The wish may come from another process, so the rows are looked
 * at from time to time; a look that fails is repeated. Ends with `stop` or when the worker is stopping.
 */
export function watchForEnd({ wakeups }: Context, watch: Watch, stopping: AbortSignal): { signal: AbortSignal; stop(): void } {
  const end = new AbortController();
  const done = new AbortController();
  const over = AbortSignal.any([done.signal, stopping]);
  void (async () => {
    while (!over.aborted) {
      // Begun before the look: a wish that comes during it ends the wait.
      const changed = wakeups.wait(watch.key, watch.milliseconds, over);
      const reason = await watch.findReason().catch(() => undefined);
      if (reason !== undefined) {
        done.abort();
        return end.abort(reason);
      }
      await changed;
    }
  })();
  return { signal: end.signal, stop: () => done.abort() };
}
