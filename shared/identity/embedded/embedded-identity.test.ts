import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Clock } from '#shared/clock.ts';
import { systemClock } from '#shared/clock.ts';
import { millisecondsPerDay, millisecondsPerHour } from '#shared/durations.ts';
import { describeIdentity } from '#shared/identity/contract/identity.ts';
import { describeLoginLimits } from '#shared/identity/contract/login-limits.ts';
import { createArgon2Hasher } from '#shared/identity/embedded/argon2-hasher.ts';
import { createEmbeddedIdentity, sweepRefreshTokens } from '#shared/identity/embedded/embedded-identity.ts';
import { createPostgresLoginAttempts } from '#shared/identity/embedded/postgres-login-attempts.ts';
import { createLoginLimits } from '#shared/identity/login-limits.ts';
import { announcedSeconds, signingDays } from '#shared/identity/signing-keys.ts';
import { createSecretBox, type SecretBox } from '#shared/secret-box.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { TestClock } from '#test/support/test-clock.ts';

let database: TestDatabase;
let secrets: SecretBox;
beforeAll(async () => {
  database = await createTestDatabase();
  secrets = await createSecretBox(crypto.getRandomValues(new Uint8Array(32)));
});
afterAll(() => database?.close());
beforeEach(() => database.db.deleteFrom('signing_keys').execute());

const issuer = 'http://localhost/v1/auth';
const create = (clock: Clock = systemClock) =>
  createEmbeddedIdentity({ db: database.db, secrets, clock, issuer, hasher: createArgon2Hasher() });

/** The rules are the same whatever a hash costs, and there are some sixty hashes in them. */
const passwordCost = { memory: 64, passes: 1, parallelism: 1 };

describeIdentity('embedded', (clock) =>
  createEmbeddedIdentity({ db: database.db, secrets, clock, issuer, hasher: createArgon2Hasher(passwordCost) }),
);
describeLoginLimits('PostgreSQL', () => createPostgresLoginAttempts(database.db));

describe('embedded identity', () => {
  const password = 'correct horse';
  const home = { source: '203.0.113.7', client: 'a test' };
  const newEmail = () => `${crypto.randomUUID()}@example.com`;

  it('makes one signing key however many processes start at once', async () => {
    const fresh = await createTestDatabase();
    const processes = Array.from({ length: 6 }, () =>
      createEmbeddedIdentity({ db: fresh.db, secrets, clock: systemClock, issuer, hasher: createArgon2Hasher() }),
    );
    const published = await Promise.all(processes.map((identity) => identity.readKeys()));
    const stored = await fresh.db.selectFrom('signing_keys').select('id').execute();
    await fresh.close();
    expect(stored).toHaveLength(1);
    expect(new Set(published.flatMap(({ keys }) => keys.map((key) => key.kid)))).toEqual(new Set(stored.map((row) => row.id)));
  });

  it('honours tokens that another process signed, also by a key it has just made', async () => {
    const clock = TestClock.standing();
    const [one, two] = [create(clock), create(clock)];
    const user = await one.createUser(newEmail(), password);
    await one.readKeys();
    clock.advance(signingDays * millisecondsPerDay);
    const before = await one.issueTokens(user);
    await expect(two.verifyAccessToken(before.accessToken)).resolves.toMatchObject({ id: user.id });
    await one.rotateKeys();
    clock.advance(announcedSeconds * 1000);
    const after = await one.issueTokens(user);
    expect(after.accessToken.split('.')[0]).not.toBe(before.accessToken.split('.')[0]);
    await expect(two.verifyAccessToken(after.accessToken)).resolves.toMatchObject({ id: user.id });
  });

  it('adds one next key however many processes rotate at once', async () => {
    const clock = TestClock.standing();
    await create(clock).readKeys();
    clock.advance(signingDays * millisecondsPerDay);
    const added = await Promise.all(Array.from({ length: 6 }, () => create(clock).rotateKeys()));
    expect(added.filter(Boolean)).toHaveLength(1);
    expect((await create(clock).readKeys()).keys).toHaveLength(2);
  });

  it('deletes the private key of what has ended, not only its announcement', async () => {
    const clock = TestClock.standing();
    await create(clock).readKeys();
    clock.advance(signingDays * millisecondsPerDay);
    await create(clock).rotateKeys();
    const stored = () => database.db.selectFrom('signing_keys').select('id').execute();
    expect(await stored()).toHaveLength(2);
    clock.advance(2 * millisecondsPerHour);
    await create(clock).rotateKeys();
    expect(await stored()).toHaveLength(1);
  });

  it('keeps neither passwords, refresh tokens nor private keys in the clear', async () => {
    const identity = create();
    const email = newEmail();
    await identity.createUser(email, 'canary-password-93ab');
    const { refreshToken } = await identity.logIn(email, 'canary-password-93ab', home);
    const { db } = database;
    const users = await db.selectFrom('users').selectAll().execute();
    expect(users.find((user) => user.email === email)?.password_hash).toMatch(/^\$argon2id\$v=19\$m=65536,t=2,p=1\$/);
    const dump = JSON.stringify([
      users,
      await db.selectFrom('refresh_tokens').selectAll().execute(),
      await db.selectFrom('signing_keys').selectAll().execute(),
    ]);
    expect(dump).toContain('$argon2id$v=19$m=65536,t=2,p=1$');
    expect(dump).not.toContain('canary-password-93ab');
    expect(dump).not.toContain(refreshToken);
    expect(dump).not.toContain('"d"');
  });

  it('works as long for an unknown email as for a wrong password', async () => {
    const identity = create();
    const email = newEmail();
    await identity.createUser(email, password);
    /** Processor time of all threads, which other load on the machine does not stretch. */
    const workOf = async (address: string): Promise<number> => {
      const before = process.cpuUsage();
      await identity.logIn(address, 'wrong horse', home).catch(() => undefined);
      const { user, system } = process.cpuUsage(before);
      return user + system;
    };
    await workOf(newEmail());
    const known: number[] = [];
    const unknown: number[] = [];
    for (let round = 0; round < 5; round += 1) {
      known.push(await workOf(email));
      unknown.push(await workOf(newEmail()));
    }
    const ratio = median(unknown) / median(known);
    // Without the decoy the ratio is below 0.05.
    expect(ratio).toBeGreaterThan(0.6);
    expect(ratio).toBeLessThan(1.7);
  });

  it('hashes off the event loop', async () => {
    const identity = create();
    const all = process.cpuUsage();
    const loop = process.threadCpuUsage();
    for (let round = 0; round < 4; round += 1) await identity.logIn('nobody@example.com', password, home).catch(() => undefined);
    const spent = ({ user, system }: NodeJS.CpuUsage): number => user + system;
    expect(spent(process.threadCpuUsage(loop))).toBeLessThan(spent(process.cpuUsage(all)) / 2);
  });

  it('does no work for a login past the limit, be the password right or the email unknown', async () => {
    const identity = create();
    const email = newEmail();
    await identity.createUser(email, password);
    const attempts = createPostgresLoginAttempts(database.db);
    const limits = createLoginLimits(attempts, systemClock);
    const unknown = newEmail();
    for (const address of [email, unknown]) for (let time = 0; time < 10; time += 1) await limits.begin(address, home.source);
    const before = process.cpuUsage();
    for (const address of [email, unknown])
      await expect(identity.logIn(address, password, home)).rejects.toMatchObject({ code: 'rate_limited' });
    const refused = process.cpuUsage(before);
    const hashed = process.cpuUsage();
    await identity.logIn(newEmail(), password, home).catch(() => undefined);
    const one = process.cpuUsage(hashed);
    expect(refused.user + refused.system).toBeLessThan((one.user + one.system) / 2);
  });

  it('forgets refresh tokens that have expired', async () => {
    const clock = TestClock.standing();
    const identity = create(clock);
    await identity.issueTokens(await identity.createUser(newEmail(), password));
    clock.advance(32 * millisecondsPerDay);
    expect(await sweepRefreshTokens(database.db, clock)).toBeGreaterThan(0);
    expect(await sweepRefreshTokens(database.db, clock)).toBe(0);
  });
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
