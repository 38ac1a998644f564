import type { SlidingLogFacts } from '#shared/rate-limits/sliding-log-limits.ts';

/** Calls under one key that wait to be written, in the order in which they came. */
export type WaitingHits = ReadonlyMap<string, readonly Hit[]>;

export interface Hit {
  settle(facts: SlidingLogFacts): void;
  fail(error: unknown): void;
}

/**
 * Writes together what comes while the one before is being written, as a database commits: a call that comes alone waits
 * for nothing, and many at once cost a statement, not one each.
 * @param write settles or fails every hit it was given; never rejects
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
