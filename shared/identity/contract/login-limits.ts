import { beforeEach, describe, expect, it } from 'vitest';
import { millisecondsPerDay, secondsPerDay } from '#shared/durations.ts';
import { createLoginLimits, type LoginAttemptStore, type LoginLimits } from '#shared/identity/login-limits.ts';
import { TestClock } from '#test/support/test-clock.ts';

/** What the limit of failed logins does on every store. @param create once a test */
export function describeLoginLimits(name: string, create: () => LoginAttemptStore): void {
  describe(`login limits contract: ${name}`, () => {
    const [home, elsewhere] = ['203.0.113.7', '198.51.100.9'];
    let clock: TestClock;
    let store: LoginAttemptStore;
    let limits: LoginLimits;
    let email: string;
    beforeEach(() => {
      clock = TestClock.standing();
      store = create();
      limits = createLoginLimits(store, clock);
      email = `Ada.${crypto.randomUUID()}@example.com`;
    });
    const fail = async (times: number, source: string, spelling = email): Promise<void> => {
      for (let time = 0; time < times; time += 1) await limits.begin(spelling, source);
    };
    const logIn = async (source: string): Promise<void> => (await limits.begin(email, source)).succeed();
    const limited = { code: 'rate_limited' };

    it('grants ten failures in any 15 minutes, whatever the case of the email, and says when the next may be', async () => {
      await fail(4, home);
      clock.advance(600 * 1000);
      await fail(6, elsewhere, email.toUpperCase());
      const refusal = await limits.begin(email, home).catch((error: unknown) => error);
      expect(refusal).toMatchObject(limited);
      const { retryAfterSeconds } = refusal as { retryAfterSeconds: number };
      expect(retryAfterSeconds).toBeGreaterThan(290);
      expect(retryAfterSeconds).toBeLessThanOrEqual(300);
      clock.advance((retryAfterSeconds - 5) * 1000);
      await expect(limits.begin(email, home)).rejects.toMatchObject(limited);
      clock.advance(5 * 1000);
      await fail(4, home);
      await expect(limits.begin(email, home)).rejects.toMatchObject(limited);
    });

    it('counts no login that succeeds, and none whose password was not looked at', async () => {
      for (let time = 0; time < 12; time += 1) await logIn(home);
      for (let time = 0; time < 12; time += 1) await (await limits.begin(email, elsewhere)).forgive();
      await fail(10, elsewhere);
      await expect(limits.begin(email, elsewhere)).rejects.toMatchObject(limited);
    });

    it('does not lock out who has logged in from there before, while strangers have used up theirs', async () => {
      await logIn(home);
      await fail(10, elsewhere);
      await expect(limits.begin(email, elsewhere)).rejects.toMatchObject(limited);
      await logIn(home);
    });

    it('grants no more than ten failures to who has logged in from there before', async () => {
      await logIn(home);
      await fail(10, home);
      await expect(limits.begin(email, home)).rejects.toMatchObject(limited);
    });

    it('gives strangers nothing back for the login of another', async () => {
      await logIn(home);
      await fail(10, elsewhere);
      await logIn(home);
      await expect(limits.begin(email, '192.0.2.33')).rejects.toMatchObject(limited);
    });

    it('knows an address for 90 days after the last login from it, and for this account alone', async () => {
      await logIn(home);
      clock.advance((90 * secondsPerDay - 60) * 1000);
      await fail(10, elsewhere);
      await logIn(home);
      clock.advance((90 * secondsPerDay + 1) * 1000);
      await fail(10, elsewhere);
      await expect(limits.begin(email, home)).rejects.toMatchObject(limited);
      const other = `x${email}`;
      await fail(10, elsewhere, other);
      await expect(limits.begin(other, home)).rejects.toMatchObject(limited);
    });

    it('grants ten of many at once, over two processes', async () => {
      const other = createLoginLimits(store, clock);
      const begin = (index: number) => (index % 2 === 0 ? limits : other).begin(email, home);
      const results = await Promise.allSettled(Array.from({ length: 40 }, (_, index) => begin(index)));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(10);
    });

    it('forgets what is too old to count', async () => {
      clock.advance(400 * millisecondsPerDay);
      await limits.sweep();
      await fail(3, home);
      await logIn(home);
      expect(await limits.sweep()).toBe(0);
      clock.advance(901 * 1000);
      expect(await limits.sweep()).toBe(3);
      clock.advance(90 * millisecondsPerDay);
      expect(await limits.sweep()).toBe(1);
    });
  });
}
