import type { SlidingLogFacts } from '#shared/rate-limits/sliding-log-limits.ts';

/** Calls that wait to be written, by key and in order of arrival. */
export type WaitingHits = ReadonlyMap<string, readonly Hit[]>;

/** One call that waits for its result. */
export interface Hit {
  settle(facts: SlidingLogFacts): void;
  fail(error: unknown): void;
}

/**
 * Writes calls in batches (group commit): calls that arrive while a batch is being written go into the next batch. A single
 * call is written at once, and many concurrent calls cost one statement together.
 * @param write writes one batch; it must settle or fail each hit of the batch and never reject
 * @returns a function that counts one call under a key
 */
export function gatherHits(write: (hits: WaitingHits) => Promise<void>): (key: string) => Promise<SlidingLogFacts> {
  let waiting = new Map<string, Hit[]>();
  let writing = false;
  const writeAll = async (): Promise<void> => {
    writing = true;
    while (waiting.size > 0) {
      const taken = waiting;
      waiting = new Map();
      await write(taken);
    }
    writing = false;
  };
  return (key) =>
    new Promise((settle, fail) => {
      const same = waiting.get(key);
      if (same === undefined) waiting.set(key, [{ settle, fail }]);
      else same.push({ settle, fail });
      if (!writing) void writeAll();
    });
}
