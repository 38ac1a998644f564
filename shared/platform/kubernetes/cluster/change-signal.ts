import type { Cluster, Selection } from './cluster.ts';
import { pause } from './pause.ts';

/** Says that something has changed, without what. */
export interface ChangeSignal {
  /** Resolves at the next change, at the latest after so long; at once when there was one since the last call. */
  next(milliseconds: number): Promise<void>;
}

/** Watches objects until the signal aborts. Where they cannot be watched, `next` takes its full time. */
export function signalChanges(
  cluster: Pick<Cluster, 'watch'>,
  selections: Selection | readonly Selection[],
  signal: AbortSignal,
): ChangeSignal {
  let changed = new AbortController();
  const watch = async (selection: Selection): Promise<void> => {
    for await (const _ of cluster.watch(selection, signal)) changed.abort();
  };
  for (const selection of [selections].flat()) void watch(selection).catch(() => undefined);
  return {
    async next(milliseconds) {
      await pause(milliseconds, AbortSignal.any([signal, changed.signal]));
      changed = new AbortController();
    },
  };
}
