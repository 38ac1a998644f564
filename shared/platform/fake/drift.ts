import type { AppId } from '#shared/ids.ts';
import type { Drift, DriftTarget } from '#shared/platform/drift.ts';

/** Drift that a test reports. */
export interface FakeDrift extends Drift {
  report(target: DriftTarget): void;
  /** What `listAppIds` returns. */
  appIds: readonly AppId[];
}

export function createFakeDrift(): FakeDrift {
  const queue: DriftTarget[] = [];
  let wake = (): void => undefined;
  const drift: FakeDrift = {
    appIds: [],
    report(target) {
      queue.push(target);
      wake();
    },
    async *watchDrift(signal) {
      signal.addEventListener('abort', () => wake());
      while (!signal.aborted) {
        const target = queue.shift();
        if (target === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else yield target;
      }
    },
    listAppIds: async () => drift.appIds,
  };
  return drift;
}
