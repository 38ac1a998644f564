import { setImmediate } from 'node:timers/promises';

/** How long one task may keep a thread to itself while others wait for it. */
const turnMilliseconds = 15;

/** A function to call often: now and then it gives a promise to await, so that other tasks of the thread get their turn. */
export function createBreather(): () => Promise<void> | undefined {
  let turnEnds = performance.now() + turnMilliseconds;
  let calls = 0;
  return () => {
    if ((++calls & 15) !== 0 || performance.now() < turnEnds) return undefined;
    return setImmediate().then(() => {
      turnEnds = performance.now() + turnMilliseconds;
    });
  };
}
