import { describe, expect, it } from 'vitest';
import type { TokenSubject } from '#shared/identity/identity.ts';
import { cacheVerified } from '#shared/identity/verified-tokens.ts';
import type { UserId } from '#shared/ids.ts';
import { TestClock } from '#test/support/test-clock.ts';

function setUp() {
  const clock = TestClock.standing();
  const asked: string[] = [];
  const expires = Math.floor(clock.now().getTime() / 1000) + 60;
  const verify = cacheVerified(async (token) => {
    asked.push(token);
    if (token === 'bad') throw new Error('not valid');
    const subject: TokenSubject = { id: token as UserId, email: 'ada@example.com', tokenId: token };
    return { subject, expires };
  }, clock);
  return { clock, asked, verify };
}

describe('a token that was verified', () => {
  it('is not verified again while it is valid, and is once it has ended', async () => {
    const { clock, asked, verify } = setUp();
    expect((await verify('one')).id).toBe('one');
    expect((await verify('one')).id).toBe('one');
    expect(asked).toEqual(['one']);
    clock.advance(61 * 1000);
    await verify('one');
    expect(asked).toEqual(['one', 'one']);
  });

  it('speaks for no other token, and a refusal is not remembered as anything', async () => {
    const { asked, verify } = setUp();
    await verify('one');
    await expect(verify('bad')).rejects.toThrow('not valid');
    await expect(verify('bad')).rejects.toThrow('not valid');
    expect(asked).toEqual(['one', 'bad', 'bad']);
  });

  it('is forgotten, not kept for ever: at most 10,000 are', async () => {
    const { asked, verify } = setUp();
    for (let count = 0; count <= 10_000; count += 1) await verify(`token ${count}`);
    await verify('token 10000');
    expect(asked).toHaveLength(10_001);
    await verify('token 0');
    expect(asked.at(-1)).toBe('token 0');
  });
});
