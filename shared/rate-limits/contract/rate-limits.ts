import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RateLimitPolicy, RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** What every driver of the limits does. @param create an empty one on `Date.now`, which the suite holds */
export function describeRateLimits(name: string, create: () => RateLimits): void {
  describe(`rate limits contract: ${name}`, () => {
    const policy: RateLimitPolicy = { name: 'contract', limit: 5, windowSeconds: 60 };
    let limits: RateLimits;
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

    it('grants the limit and refuses the call after it', async () => {
      for (let call = 1; call <= 5; call += 1) expect(await take()).toBe(true);
      expect(await take()).toBe(false);
    });

    it('counts down what remains, and says when one more call fits', async () => {
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 4, resetMilliseconds: 60_000 });
      advance(10_000);
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 3, resetMilliseconds: 50_000 });
    });

    it('slides: no window of the length holds more than the limit, wherever it begins', async () => {
      const granted: number[] = [];
      // A burst at the end of one minute and one at the start of the next is what fixed windows let through.
      for (const pause of [0, 59_000, 500, 499, 1, 1, 0, 0, 0, 58_998, 1, 1, 1, 500, 499, 1]) {
        advance(pause);
        for (let call = 0; call < 2; call += 1) if (await take()) granted.push(Date.now());
      }
      for (const start of granted)
        expect(granted.filter((at) => at >= start && at < start + 60_000).length).toBeLessThanOrEqual(5);
      expect(granted.length).toBeGreaterThan(10);
    });

    it('refuses until the very millisecond at which the oldest call leaves the window, as it said', async () => {
      expect(await take()).toBe(true);
      advance(30_000);
      for (let call = 2; call <= 5; call += 1) expect(await take()).toBe(true);
      const refused = await limits.take(policy, key);
      expect(refused).toEqual({ granted: false, remaining: 0, resetMilliseconds: 30_000 });
      advance(29_999);
      expect(await take()).toBe(false);
      advance(1);
      expect(await take()).toBe(true);
      expect(await take()).toBe(false);
    });

    it('does not count refused calls: who keeps knocking is not kept out longer', async () => {
      for (let call = 1; call <= 5; call += 1) await take();
      for (let call = 1; call <= 20; call += 1) {
        advance(1000);
        expect(await take()).toBe(false);
      }
      advance(40_000);
      expect(await take()).toBe(true);
    });

    it('keeps keys apart, and policies', async () => {
      for (let call = 1; call <= 6; call += 1) await take();
      expect((await limits.take(policy, crypto.randomUUID())).granted).toBe(true);
      expect((await limits.take({ ...policy, name: 'contract-other' }, key)).granted).toBe(true);
    });

    it('grants exactly the limit to calls that come at once', async () => {
      const verdicts = await Promise.all(Array.from({ length: 40 }, take));
      expect(verdicts.filter(Boolean)).toHaveLength(5);
    });

    it('takes the 600 calls of the largest policy, and not one more', async () => {
      const large = { name: 'contract-large', limit: 600, windowSeconds: 60 };
      for (let call = 1; call <= 600; call += 1) {
        advance(50);
        if (!(await limits.take(large, key)).granted) expect.fail(`call ${call} was refused`);
      }
      expect((await limits.take(large, key)).granted).toBe(false);
    });
  });
}
