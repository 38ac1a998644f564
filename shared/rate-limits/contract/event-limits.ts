import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { EventLimits } from '#shared/rate-limits/event-limits.ts';
import type { RateLimitPolicy } from '#shared/rate-limits/rate-limits.ts';

/** Contract of every driver of event limits. @param create makes a driver that reads `Date.now`, which the suite controls */
export function describeEventLimits(name: string, create: () => EventLimits): void {
  describe(`event limits contract: ${name}`, () => {
    const policy: RateLimitPolicy = { name: 'contract', limit: 3, windowSeconds: 60 };
    let limits: EventLimits;
    let key: string;
    beforeEach(() => {
      vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-03-01T12:00:00Z') });
      limits = create();
      key = crypto.randomUUID();
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    const advance = (milliseconds: number): void => {
      vi.setSystemTime(Date.now() + milliseconds);
    };
    const take = (): Promise<boolean> => limits.take(policy, key).then((verdict) => verdict.granted);

    it('grants events up to the limit, counts down, and says when the window ends', async () => {
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 2, resetMilliseconds: 60_000 });
      advance(10_000);
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 1, resetMilliseconds: 50_000 });
      expect(await take()).toBe(true);
      expect(await limits.take(policy, key)).toEqual({ granted: false, remaining: 0, resetMilliseconds: 50_000 });
    });

    it('grants events again when the window is over', async () => {
      for (let event = 1; event <= 5; event += 1) await take();
      advance(59_999);
      expect(await take()).toBe(false);
      advance(2);
      expect(await take()).toBe(true);
    });

    it('knows a key without events left without asking anybody', async () => {
      expect(limits.refusedMilliseconds(policy, key)).toBe(0);
      for (let event = 1; event <= 2; event += 1) await take();
      expect(limits.refusedMilliseconds(policy, key)).toBe(0);
      await take();
      expect(limits.refusedMilliseconds(policy, key)).toBe(60_000);
      expect(limits.refusedMilliseconds(policy, crypto.randomUUID())).toBe(0);
      advance(60_001);
      expect(limits.refusedMilliseconds(policy, key)).toBe(0);
    });

    it('takes events back', async () => {
      for (let event = 1; event <= 3; event += 1) await take();
      await limits.giveBack(policy, key);
      expect(limits.refusedMilliseconds(policy, key)).toBe(0);
      expect(await take()).toBe(true);
      expect(await take()).toBe(false);
    });

    it('counts keys and policies apart', async () => {
      for (let event = 1; event <= 4; event += 1) await take();
      expect((await limits.take(policy, crypto.randomUUID())).granted).toBe(true);
      expect((await limits.take({ ...policy, name: 'contract-other' }, key)).granted).toBe(true);
    });

    it('grants exactly the limit to concurrent events', async () => {
      const granted = await Promise.all(Array.from({ length: 20 }, take));
      expect(granted.filter(Boolean)).toHaveLength(3);
    });

    it('removes windows that are over, and no other', async () => {
      advance(1_000_000_000);
      await limits.sweep();
      await take();
      advance(60_001);
      key = crypto.randomUUID();
      await take();
      expect(await limits.sweep()).toBe(1);
    });
  });
}
