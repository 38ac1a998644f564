import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Wakeups } from '#shared/wakeups/wakeups.ts';

/** Longer than any test: a wait of this length is ended by a wakeup, or the test fails. */
export const forEver = 600_000;

/** The drivers under test. */
export interface WakeupsFixture {
  /** Of two processes, or twice the same driver. */
  one: Wakeups;
  other: Wakeups;
  close(): Promise<void>;
}

/** Contract of every wakeups driver. */
export function describeWakeups(name: string, open: () => Promise<WakeupsFixture>): void {
  describe(`wakeups ${name}`, () => {
    let fixture: WakeupsFixture;
    const over = new AbortController();
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(async () => {
      over.abort();
      await fixture.close();
    });

    it('end every wait for the key, in this and the other process, repeatedly', async () => {
      const { one, other } = fixture;
      for (let round = 0; round < 3; round++) {
        const waits = [one, one, other, other].map((wakeups) => wakeups.wait('a', forEver, over.signal));
        one.wake('a');
        await expect(Promise.all(waits)).resolves.toHaveLength(4);
      }
    });

    it('do not end waits for another key', async () => {
      const { one, other } = fixture;
      let woken = 0;
      for (const wakeups of [one, other]) {
        void wakeups.wait('another', forEver, over.signal).then(() => {
          if (!over.signal.aborted) woken++;
        });
      }
      // Notifications arrive in order: earlier ones have arrived by now.
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

    it('end after their time and when the signal aborts', async () => {
      const { one } = fixture;
      await expect(one.wait('nothing', 1)).resolves.toBeUndefined();
      const gone = new AbortController();
      const wait = one.wait('nothing', forEver, gone.signal);
      gone.abort();
      await expect(wait).resolves.toBeUndefined();
      await expect(one.wait('nothing', forEver, gone.signal)).resolves.toBeUndefined();
    });

    it('accept any key', async () => {
      const { one, other } = fixture;
      for (const key of ['build:1 2', "quote'; drop table apps", 'ключ', '']) {
        const wait = other.wait(key, forEver, over.signal);
        one.wake(key);
        await expect(wait).resolves.toBeUndefined();
      }
    });
  });
}
