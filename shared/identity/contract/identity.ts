import { beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '#shared/clock.ts';
import { millisecondsPerDay, secondsPerDay } from '#shared/durations.ts';
import type { CredentialChange, IdentityUser } from '#shared/identity/identity.ts';
import type { PasswordIdentity } from '#shared/identity/password-identity.ts';
import { announcedSeconds, signingDays } from '#shared/identity/signing-keys.ts';
import type { SessionId } from '#shared/ids.ts';
import { TestClock } from '#test/support/test-clock.ts';

/**
 * What every identity with passwords does.
 * @param create before any test made a signing key
 */
export function describeIdentity(name: string, create: (clock: Clock) => PasswordIdentity): void {
  describe(`identity contract: ${name}`, () => {
    const password = 'correct horse';
    const home = { source: '203.0.113.7', client: 'a test' };
    let clock: TestClock;
    let identity: PasswordIdentity;
    let email: string;
    beforeEach(() => {
      clock = TestClock.standing();
      identity = create(clock);
      email = `Ada.${crypto.randomUUID()}@Example.com`;
    });

    it('makes a user who can log in, whatever the case of the email', async () => {
      const user = await identity.createUser(` ${email} `, password);
      expect(user.email).toBe(email);
      const tokens = await identity.logIn(email.toUpperCase(), password, home);
      expect(await identity.verifyAccessToken(tokens.accessToken)).toMatchObject({ id: user.id, email });
      expect(tokens.expiresIn).toBe(3600);
    });

    it('refuses a second user of the same email', async () => {
      await identity.createUser(email, password);
      await expect(identity.createUser(email.toLowerCase(), password)).rejects.toMatchObject({ code: 'conflict' });
    });

    it.each([
      '',
      'ada',
      'ada@',
      '@example.com',
      'a b@example.com',
      'ada@-example.com',
      'ada@example',
      `${'a'.repeat(65)}@example.com`,
    ])('refuses %j as an email, and names the field', async (bad) => {
      await expect(identity.createUser(bad, password)).rejects.toMatchObject({
        code: 'validation_failed',
        details: [{ path: 'email' }],
      });
    });

    it.each(['', '1234567', 'x'.repeat(201)])('refuses %j as a password, and names the field', async (bad) => {
      await expect(identity.createUser(email, bad)).rejects.toMatchObject({
        code: 'validation_failed',
        details: [{ path: 'password' }],
      });
    });

    it.each(['12345678', ' spaces kept ', 'ünïcödé 🐎 \u0000', 'x'.repeat(200)])(
      'takes %j as a password, exactly',
      async (good) => {
        await identity.createUser(email, good);
        await expect(identity.logIn(email, good, home)).resolves.toMatchObject({ expiresIn: 3600 });
        await expect(identity.logIn(email, `${good.slice(0, -1)}?`, home)).rejects.toMatchObject({ code: 'unauthorized' });
      },
    );

    it('refuses an unknown email and a wrong password with the same words', async () => {
      await identity.createUser(email, password);
      const refusals = await Promise.all([
        identity.logIn(email, 'wrong horse', home).catch((error: unknown) => error),
        identity.logIn(`x${email}`, password, home).catch((error: unknown) => error),
      ]);
      expect(refusals[0]).toMatchObject({ code: 'unauthorized' });
      expect(String(refusals[0])).toBe(String(refusals[1]));
    });

    it('counts wrong passwords, and at ten refuses the right one too, but not where the user is at home', async () => {
      await identity.createUser(email, password, home.source);
      const elsewhere = { source: '198.51.100.9', client: 'another test' };
      for (let time = 0; time < 10; time += 1)
        await expect(identity.logIn(email, 'wrong horse', elsewhere)).rejects.toMatchObject({ code: 'unauthorized' });
      await expect(identity.logIn(email, password, elsewhere)).rejects.toMatchObject({ code: 'rate_limited' });
      await expect(identity.logIn(email, password, home)).resolves.toBeDefined();
    });

    it('names each token', async () => {
      const user = await identity.createUser(email, password);
      const [one, two] = await Promise.all([identity.issueTokens(user), identity.issueTokens(user)]);
      const subjects = await Promise.all([
        identity.verifyAccessToken(one.accessToken),
        identity.verifyAccessToken(two.accessToken),
      ]);
      expect(subjects[0].tokenId).not.toBe(subjects[1].tokenId);
    });

    it('honours an access token for an hour, and no longer', async () => {
      const { accessToken } = await identity.issueTokens(await identity.createUser(email, password));
      clock.advance(3590 * 1000);
      await expect(identity.verifyAccessToken(accessToken)).resolves.toBeDefined();
      clock.advance(20 * 1000);
      await expect(identity.verifyAccessToken(accessToken)).rejects.toMatchObject({ code: 'unauthorized' });
    });

    it('trades a refresh token for new ones, of the same user', async () => {
      const user = await identity.createUser(email, password);
      const first = await identity.issueTokens(user);
      const second = await identity.refresh(first.refreshToken);
      expect(second.refreshToken).not.toBe(first.refreshToken);
      expect(await identity.verifyAccessToken(second.accessToken)).toMatchObject({ id: user.id, email });
    });

    it('ends the whole family when a refresh token is used twice, and no other', async () => {
      const user = await identity.createUser(email, password);
      const elsewhere = await identity.issueTokens(user);
      const first = await identity.issueTokens(user);
      const second = await identity.refresh(first.refreshToken);
      await expect(identity.refresh(first.refreshToken)).rejects.toMatchObject({ code: 'unauthorized' });
      await expect(identity.refresh(second.refreshToken)).rejects.toMatchObject({ code: 'unauthorized' });
      await expect(identity.refresh(elsewhere.refreshToken)).resolves.toBeDefined();
    });

    it('lets one of many who refresh at once through, and then ends the family', async () => {
      const first = await identity.issueTokens(await identity.createUser(email, password));
      const results = await Promise.allSettled(Array.from({ length: 8 }, () => identity.refresh(first.refreshToken)));
      const winners = results.filter((result) => result.status === 'fulfilled');
      expect(winners).toHaveLength(1);
      await expect(identity.refresh(winners[0]?.value.refreshToken ?? '')).rejects.toMatchObject({ code: 'unauthorized' });
    });

    it('forgets a refresh token after 30 days', async () => {
      const first = await identity.issueTokens(await identity.createUser(email, password));
      clock.advance((30 * secondsPerDay + 1) * 1000);
      await expect(identity.refresh(first.refreshToken)).rejects.toMatchObject({ code: 'unauthorized' });
    });

    it('ends a session by its refresh token, and does not mind an unknown one', async () => {
      const first = await identity.issueTokens(await identity.createUser(email, password));
      const second = await identity.refresh(first.refreshToken);
      await identity.revoke(second.refreshToken);
      await identity.revoke('unknown');
      await expect(identity.refresh(second.refreshToken)).rejects.toMatchObject({ code: 'unauthorized' });
    });

    const sessionsOf = (user: IdentityUser) => identity.listSessions(user.id, { before: undefined, limit: 10 });

    it('lists sessions, newest first, page by page: when they began and were used, and from where', async () => {
      const user = await identity.createUser(email, password);
      const first = await identity.logIn(email, password, home);
      clock.advance(1000);
      await identity.logIn(email, password, { source: '198.51.100.9', client: 'curl' });
      clock.advance(1000);
      await identity.refresh(first.refreshToken);
      const at = clock.now().getTime();
      const [newest, oldest] = await sessionsOf(user);
      expect(newest).toMatchObject({ source: '198.51.100.9', client: 'curl', createdAt: new Date(at - 1000) });
      expect(oldest).toMatchObject({ ...home, createdAt: new Date(at - 2000), lastUsedAt: new Date(at) });
      expect(oldest?.expiresAt).toEqual(new Date(at + 30 * millisecondsPerDay));
      expect((await identity.verifyAccessToken(first.accessToken)).sessionId).toBe(oldest?.id);
      const before = { createdAt: newest?.createdAt ?? new Date(), id: newest?.id ?? '' };
      expect(await identity.listSessions(user.id, { before, limit: 10 })).toEqual([oldest]);
      expect(await identity.listSessions(user.id, { before: undefined, limit: 1 })).toEqual([newest]);
    });

    it('does not list sessions that have ended or expired, nor those of others', async () => {
      const user = await identity.createUser(email, password);
      await identity.issueTokens(await identity.createUser(`x${email}`, password));
      await identity.issueTokens(user);
      clock.advance((30 * secondsPerDay + 1) * 1000);
      const { refreshToken } = await identity.issueTokens(user);
      await identity.revoke(refreshToken);
      expect(await sessionsOf(user)).toEqual([]);
    });

    it('ends one session, all but one, or all, and says how many', async () => {
      const user = await identity.createUser(email, password);
      const tokens = [await identity.issueTokens(user), await identity.issueTokens(user), await identity.issueTokens(user)];
      const ids = await Promise.all(
        tokens.map(async ({ accessToken }) => (await identity.verifyAccessToken(accessToken)).sessionId as SessionId),
      );
      const [one, kept] = ids as [SessionId, SessionId];
      expect(await identity.endSessions(user.id, { only: one })).toBe(1);
      expect(await identity.endSessions(user.id, { only: one })).toBe(0);
      await expect(identity.refresh(tokens[0]?.refreshToken ?? '')).rejects.toMatchObject({ code: 'unauthorized' });
      expect(await identity.endSessions(user.id, { except: kept })).toBe(1);
      expect((await sessionsOf(user)).map(({ id }) => id)).toEqual([kept]);
      await expect(identity.refresh(tokens[1]?.refreshToken ?? '')).resolves.toBeDefined();
      expect(await identity.endSessions(user.id, {})).toBe(1);
      expect(await sessionsOf(user)).toEqual([]);
    });

    it("ends no other user's session", async () => {
      const user = await identity.createUser(email, password);
      const { accessToken } = await identity.issueTokens(await identity.createUser(`x${email}`, password));
      const { sessionId } = await identity.verifyAccessToken(accessToken);
      expect(await identity.endSessions(user.id, { only: sessionId as SessionId })).toBe(0);
      expect(await identity.endSessions(user.id, {})).toBe(0);
    });

    it('changes the password for who knows it', async () => {
      const user = await identity.createUser(email, password);
      const changed = await identity.changeCredentials(
        user.id,
        { currentPassword: password, password: 'new horse' },
        home.source,
      );
      expect(changed).toEqual(user);
      await expect(identity.logIn(email, password, home)).rejects.toMatchObject({ code: 'unauthorized' });
      await expect(identity.logIn(email, 'new horse', home)).resolves.toBeDefined();
    });

    it('changes the email: the old one is free again, and refreshed tokens have the new one', async () => {
      const user = await identity.createUser(email, password);
      const { refreshToken } = await identity.issueTokens(user);
      const changed = await identity.changeCredentials(user.id, { currentPassword: password, email: ` y${email}` }, home.source);
      expect(changed).toEqual({ id: user.id, email: `y${email}` });
      await expect(identity.logIn(`Y${email}`, password, home)).resolves.toBeDefined();
      const { accessToken } = await identity.refresh(refreshToken);
      expect(await identity.verifyAccessToken(accessToken)).toMatchObject({ id: user.id, email: `y${email}` });
      await expect(identity.createUser(email, password)).resolves.toBeDefined();
    });

    it('changes the case of an email', async () => {
      const user = await identity.createUser(email, password);
      const change = { currentPassword: password, email: email.toLowerCase() };
      await expect(identity.changeCredentials(user.id, change, home.source)).resolves.toMatchObject({
        email: email.toLowerCase(),
      });
    });

    it('changes nothing for a wrong password, a bad value or an email that is taken', async () => {
      const user = await identity.createUser(email, password);
      await identity.createUser(`x${email}`, password);
      const change = (values: Partial<CredentialChange>) =>
        identity.changeCredentials(user.id, { currentPassword: password, ...values }, home.source);
      await expect(change({ currentPassword: 'wrong horse', password: 'new horse' })).rejects.toMatchObject({
        code: 'forbidden',
      });
      await expect(change({ password: 'short' })).rejects.toMatchObject({ details: [{ path: 'password' }] });
      await expect(change({ email: 'ada' })).rejects.toMatchObject({ details: [{ path: 'email' }] });
      await expect(change({ email: `X${email}`, password: 'new horse' })).rejects.toMatchObject({ code: 'conflict' });
      await expect(identity.logIn(email, password, home)).resolves.toBeDefined();
    });

    it('limits wrong passwords and taken emails of a change like failed logins', async () => {
      const user = await identity.createUser(email, password);
      await identity.createUser(`x${email}`, password);
      const change = { currentPassword: 'wrong horse', password: 'new horse' };
      const taken = { currentPassword: password, email: `x${email}` };
      for (let time = 0; time < 5; time += 1) {
        await expect(identity.changeCredentials(user.id, change, home.source)).rejects.toMatchObject({ code: 'forbidden' });
        await expect(identity.changeCredentials(user.id, taken, home.source)).rejects.toMatchObject({ code: 'conflict' });
      }
      await expect(identity.changeCredentials(user.id, taken, home.source)).rejects.toMatchObject({ code: 'rate_limited' });
    });

    it('begins no session with a password that is changed while it is checked', async () => {
      const user = await identity.createUser(email, password);
      const results = await Promise.allSettled([
        ...Array.from({ length: 6 }, () => identity.logIn(email, password, home)),
        identity
          .changeCredentials(user.id, { currentPassword: password, password: 'new horse' }, home.source)
          .then(() => identity.endSessions(user.id, {})),
      ]);
      expect(results.at(-1)?.status).toBe('fulfilled');
      expect(await sessionsOf(user)).toEqual([]);
    });

    it('publishes the public key that its tokens name, and nothing private', async () => {
      const { accessToken } = await identity.issueTokens(await identity.createUser(email, password));
      const header = JSON.parse(atob(accessToken.split('.')[0] ?? '')) as Record<string, unknown>;
      const { keys } = await identity.readKeys();
      expect(header).toMatchObject({ alg: 'ES256', typ: 'at+jwt' });
      expect(keys.map((key) => key.kid)).toContain(header.kid);
      for (const key of keys) expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
    });

    const keyOf = async (user: IdentityUser): Promise<string> =>
      (JSON.parse(atob((await identity.issueTokens(user)).accessToken.split('.')[0] ?? '')) as { kid: string }).kid;
    const publishedKeys = async (): Promise<unknown[]> => (await identity.readKeys()).keys.map((key) => key.kid);

    it('leaves a key that is younger than 30 days', async () => {
      const user = await identity.createUser(email, password);
      const first = await keyOf(user);
      expect(await identity.rotateKeys()).toBe(false);
      clock.advance((signingDays * secondsPerDay - 60) * 1000);
      expect(await identity.rotateKeys()).toBe(false);
      expect(await publishedKeys()).toEqual([first]);
    });

    it('publishes the next key after 30 days, and signs by it as soon as no cached key set can be without it', async () => {
      const user = await identity.createUser(email, password);
      const first = await keyOf(user);
      clock.advance((signingDays * secondsPerDay + 1) * 1000);
      expect(await identity.rotateKeys()).toBe(true);
      expect(await identity.rotateKeys()).toBe(false);
      const [next, ...others] = await publishedKeys();
      expect(others).toEqual([first]);
      expect(await keyOf(user)).toBe(first);
      clock.advance(announcedSeconds * 1000);
      expect(await keyOf(user)).toBe(next);
      clock.advance(signingDays * millisecondsPerDay);
      expect(await identity.rotateKeys()).toBe(true);
      expect(await publishedKeys()).toHaveLength(2);
    });

    it('honours the tokens of a retired key until they expire, and then forgets the key', async () => {
      const user = await identity.createUser(email, password);
      await identity.issueTokens(user);
      clock.advance(signingDays * millisecondsPerDay);
      await identity.rotateKeys();
      clock.advance((announcedSeconds - 10) * 1000);
      const last = await identity.issueTokens(user);
      clock.advance(3590 * 1000);
      expect(await publishedKeys()).toHaveLength(2);
      await expect(identity.verifyAccessToken(last.accessToken)).resolves.toMatchObject({ id: user.id });
      clock.advance(600 * 1000);
      await identity.rotateKeys();
      expect(await publishedKeys()).toHaveLength(1);
    });
  });
}
