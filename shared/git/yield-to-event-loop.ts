import { setImmediate } from 'node:timers/promises';
import { GitFault } from '#shared/git/git-fault.ts';

/**
 * Called once for each small step of a long computation. Returns undefined while there is time left, and a promise to await
 * when it is time to let other tasks of the thread run:
 *
 *     const pause = yieldToEventLoop();
 *     if (pause !== undefined) await pause;
 *
 * The promise rejects with a GitFault once nobody waits for the computation any more.
 */
export type YieldToEventLoop = () => Promise<void> | undefined;

/** How long one task may keep a thread to itself while others wait for it. */
const longestRunMilliseconds = 15;

/** @param signal aborted when nobody waits for the task any more */
export function createYieldToEventLoop(signal?: AbortSignal): YieldToEventLoop {
  let runEnds = performance.now() + longestRunMilliseconds;
  let calls = 0;
  return () => {
    // Reading the clock costs more than most steps: only each sixteenth call does.
    if ((++calls & 15) !== 0 || performance.now() < runEnds) return undefined;
    return setImmediate().then(() => {
      if (signal?.aborted === true) throw new GitFault('the client has gone');
      runEnds = performance.now() + longestRunMilliseconds;
    });
  };
}
