import { setImmediate } from 'node:timers/promises';
import { GitFault } from '#shared/git/git-fault.ts';

/** How long one task may keep a thread to itself while others wait for it. */
const turnMilliseconds = 15;

/**
 * A function to call often: now and then it gives a promise to await, so that other tasks of the thread get their turn.
 * @param signal once it is aborted, that promise rejects with a GitFault: nobody waits for the task any more
 */
export function createBreather(signal?: AbortSignal): () => Promise<void> | undefined {
  let turnEnds = performance.now() + turnMilliseconds;
  let calls = 0;
  return () => {
    if ((++calls & 15) !== 0 || performance.now() < turnEnds) return undefined;
    return setImmediate().then(() => {
      if (signal?.aborted === true) throw new GitFault('the client has gone');
      turnEnds = performance.now() + turnMilliseconds;
    });
  };
}
