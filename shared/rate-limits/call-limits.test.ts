import { beforeEach, describe, expect, it } from 'vitest';
import { type CallLimits, createCallLimits } from '#shared/rate-limits/call-limits.ts';
import { createFakeRateLimits } from '#shared/rate-limits/fake-rate-limits.ts';
import type { RateLimits } from '#shared/rate-limits/rate-limits.ts';

let now: number;
let rateLimits: RateLimits;
let calls: CallLimits;
beforeEach(() => {
  now = Date.parse('2026-03-01T12:00:00Z');
  rateLimits = createFakeRateLimits(() => now);
  calls = createCallLimits(rateLimits);
});

async function granted(count: number, tokenId: string, userId: string, limits = calls): Promise<number> {
  let sum = 0;
  for (let call = 0; call < count; call += 1) if ((await limits.take({ tokenId, userId })).granted) sum += 1;
  return sum;
}

describe('calls of tokens', () => {
  it('are limited to exactly 600 for each token', async () => {
    expect(await granted(700, 'one', 'ada')).toBe(600);
    expect(await granted(700, 'two', 'ada')).toBe(600);
    expect((await calls.take({ tokenId: 'one', userId: 'ada' })).policy.name).toBe('authenticated');
    now += 60_000;
    expect(await granted(700, 'one', 'ada')).toBe(600);
  });

  it('are limited to 1800 for all tokens of a user, however many there are, and not for other users', async () => {
    let sum = 0;
    for (let token = 0; token < 40; token += 1) sum += await granted(100, `token ${token}`, 'ada');
    expect(sum).toBeGreaterThanOrEqual(1800);
    expect(sum).toBeLessThan(1820);
    const refused = await calls.take({ tokenId: 'new', userId: 'ada' });
    expect(refused).toMatchObject({ granted: false, resetMilliseconds: 60_000, policy: { name: 'user', limit: 1800 } });
    expect(await granted(1, 'of bob', 'bob')).toBe(1);
    now += 60_000;
    expect(await granted(1, 'new', 'ada')).toBe(1);
  });

  it('are limited over all processes, to 19 calls for each', async () => {
    const others = [1, 2, 3].map(() => createCallLimits(rateLimits));
    let sum = 0;
    for (let token = 0; token < 80; token += 1) sum += await granted(50, `token ${token}`, 'ada', others[token % 3]);
    expect(sum).toBeGreaterThanOrEqual(1800);
    expect(sum).toBeLessThan(1800 + 3 * 20);
  });

  it('are counted by limits that are created for each call, if these share a memory', async () => {
    const uncounted = new Map<string, number>();
    let sum = 0;
    for (let token = 0; token < 40; token += 1)
      for (let call = 0; call < 50; call += 1)
        sum += await granted(1, `token ${token}`, 'ada', createCallLimits(rateLimits, uncounted));
    expect(sum).toBeGreaterThanOrEqual(1800);
    expect(sum).toBeLessThan(1820);
  });

  it('that are refused are known without asking anybody, and those of others are not', async () => {
    expect(calls.refusal({ tokenId: 'one', userId: 'ada' })).toBeUndefined();
    await granted(601, 'one', 'ada');
    expect(calls.refusal({ tokenId: 'one', userId: 'ada' })).toMatchObject({ granted: false, policy: { name: 'authenticated' } });
    expect(calls.refusal({ tokenId: 'two', userId: 'ada' })).toBeUndefined();
  });
});
