import { setTimeout as sleep } from 'node:timers/promises';
import { millisecondsPerMinute } from '#shared/durations.ts';
import { limits } from '#shared/limits.ts';

/** Holds rounds back, so that no token of a platform exceeds its calls of a minute. */
export interface Pace {
  wait(): Promise<void>;
  /** Call it at the end of a round. */
  countRound(): void;
}

/** @param calls of each token in a round */
export function createPace(calls: number): Pace {
  // Less than the limit: the tokens were used before.
  const most = Math.floor(limits.http.authenticatedPerMinute / calls) - 1;
  const rounds: number[] = [];
  return {
    async wait() {
      const oldest = rounds.at(-most);
      if (oldest === undefined) return;
      // A second more: the first call of a round is earlier than its end, but the clocks are two.
      await sleep(Math.max(0, oldest + millisecondsPerMinute + 1000 - performance.now()));
    },
    countRound() {
      rounds.push(performance.now());
    },
  };
}
