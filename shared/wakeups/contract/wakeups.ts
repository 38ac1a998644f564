import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Wakeups } from '#shared/wakeups/wakeups.ts';

/** Longer than any test: who waits so long is woken, or fails the test. */
export const forEver = 600_000;

export interface WakeupsGround {
  /** Of two processes, or one and the same. */
  one: Wakeups;
  other: Wakeups;
  close(): Promise<void>;
}

/** What whoever waits for a row to change relies on. */
export function describeWakeups(name: string, open: () => Promise<WakeupsGround>): void {
  describe(`wakeups ${name}`, () => {
    let ground: WakeupsGround;
    const over = new AbortController();
    beforeAll(async () => {
      ground = await open();
    });
    afterAll(async () => {
      over.abort();
      await ground.close();
    });

    it('reach everybody who waits for the key, here and elsewhere, again and again', async () => {
      const { one, other } = ground;
      for (let round = 0; round < 3; round++) {
        const waits = [one, one, other, other].map((wakeups) => wakeups.wait('a', forEver, over.signal));
        one.wake('a');
        await Promise.all(waits);
      }
    });

    it('reach nobody who waits for another key', async () => {
      const { one, other } = ground;
      let woken = 0;
      for (const wakeups of [one, other]) {
        void wakeups.wait('another', forEver, over.signal).then(() => {
          if (!over.signal.aborted) woken++;
        });
      }
      // They arrive in order: what was to come before this has come.
      for (const [from, to] of [
        [one, other],
        [other, one],
      ] as const) {
        const wait = to.wait('barrier', forEver, over.signal);
        from.wake('barrier');
        await wait;
      }
      expect(woken).toBe(0);
    });

    it('end after their time, and when nobody wants to know any more', async () => {
      const { one } = ground;
      await one.wait('nothing', 1);
      const gone = new AbortController();
      const wait = one.wait('nothing', forEver, gone.signal);
      gone.abort();
      await wait;
      await one.wait('nothing', forEver, gone.signal);
    });

    it('carry any key', async () => {
      const { one, other } = ground;
      for (const key of ['build:1 2', "quote'; drop table apps", 'ключ', '']) {
        const wait = other.wait(key, forEver, over.signal);
        one.wake(key);
        await wait;
      }
    });
  });
}
