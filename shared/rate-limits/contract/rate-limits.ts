import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { RateLimitPolicy, RateLimits } from '#shared/rate-limits/rate-limits.ts';

/** Contract of every rate limit driver. @param create makes an empty driver that reads `Date.now`, which the suite controls */
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

    it('counts down the remaining calls and reports when the next call is allowed', async () => {
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 4, resetMilliseconds: 60_000 });
      advance(10_000);
      expect(await limits.take(policy, key)).toEqual({ granted: true, remaining: 3, resetMilliseconds: 50_000 });
    });

    it('allows no more than the limit in any window, wherever the window begins', async () => {
      const granted: number[] = [];
      // Fixed windows would allow a burst at the end of one minute and another at the start of the next.
      for (const pause of [0, 59_000, 500, 499, 1, 1, 0, 0, 0, 58_998, 1, 1, 1, 500, 499, 1]) {
        advance(pause);
        for (let call = 0; call < 2; call += 1) if (await take()) granted.push(Date.now());
      }
      for (const start of granted)
        expect(granted.filter((at) => at >= start && at < start + 60_000).length).toBeLessThanOrEqual(5);
      expect(granted.length).toBeGreaterThan(10);
    });

    it('refuses until exactly the millisecond at which the oldest call leaves the window, as reported', async () => {
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

    it('does not count refused calls: repeated attempts do not extend the refusal', async () => {
      for (let call = 1; call <= 5; call += 1) await take();
      for (let call = 1; call <= 20; call += 1) {
        advance(1000);
        expect(await take()).toBe(false);
      }
      advance(40_000);
      expect(await take()).toBe(true);
    });

    it('counts keys and policies apart', async () => {
      for (let call = 1; call <= 6; call += 1) await take();
      expect((await limits.take(policy, crypto.randomUUID())).granted).toBe(true);
      expect((await limits.take({ ...policy, name: 'contract-other' }, key)).granted).toBe(true);
    });

    it('grants exactly the limit to concurrent calls', async () => {
      const verdicts = await Promise.all(Array.from({ length: 40 }, take));
      expect(verdicts.filter(Boolean)).toHaveLength(5);
    });

    it('grants the 600 calls of the largest policy and refuses the next', async () => {
      const large = { name: 'contract-large', limit: 600, windowSeconds: 60 };
      for (let call = 1; call <= 600; call += 1) {
        advance(50);
        if (!(await limits.take(large, key)).granted) expect.fail(`call ${call} was refused`);
      }
      expect((await limits.take(large, key)).granted).toBe(false);
    });
  });
}
