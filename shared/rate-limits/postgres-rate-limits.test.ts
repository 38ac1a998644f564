import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectPostgres } from '#shared/database/postgres.ts';
import { describeRateLimits } from '#shared/rate-limits/contract/rate-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

describeRateLimits('PostgreSQL', () => createPostgresRateLimits(database.db, Date.now));

describe('PostgreSQL rate limits', () => {
  it('are exact over several processes that share a database, by its clock', async () => {
    const others = [1, 2, 3].map(() => connectPostgres(database.url, () => undefined, 4));
    const processes = [database.db, ...others.map((other) => other.db)].map((db) => createPostgresRateLimits(db));
    const policy = { name: 'processes', limit: 100, windowSeconds: 60 };
    const calls = Array.from(
      { length: 240 },
      (_, index) =>
        (processes[index % processes.length] ?? processes[0])?.take(policy, 'shared') ?? Promise.reject(new Error('no process')),
    );
    const verdicts = await Promise.all(calls);
    await Promise.all(others.map((other) => other.close()));
    expect(verdicts.filter((verdict) => verdict?.granted)).toHaveLength(100);
  });

  it('tell a wait after which the call is granted, by the clock of the database', async () => {
    const limits = createPostgresRateLimits(database.db);
    const policy = { name: 'wait', limit: 2, windowSeconds: 1 };
    await limits.take(policy, 'me');
    await limits.take(policy, 'me');
    const refused = await limits.take(policy, 'me');
    expect(refused.granted).toBe(false);
    expect(refused.resetMilliseconds).toBeGreaterThan(0);
    expect(refused.resetMilliseconds).toBeLessThanOrEqual(1000);
    // The time to wait for is itself what is promised here.
    await new Promise((resolve) => setTimeout(resolve, refused.resetMilliseconds + 1));
    expect((await limits.take(policy, 'me')).granted).toBe(true);
  });

  it('spare the database the calls of a key that was just refused', async () => {
    const limits = createPostgresRateLimits(database.db);
    const policy = { name: 'flood', limit: 1, windowSeconds: 60 };
    await limits.take(policy, 'me');
    expect((await limits.take(policy, 'me')).granted).toBe(false);
    await sql`delete from rate_limits`.execute(database.db);
    expect((await limits.take(policy, 'me')).granted).toBe(false);
  });

  it('forget a key that was idle for an hour, and no other', async () => {
    const limits = createPostgresRateLimits(database.db);
    const policy = { name: 'sweep', limit: 5, windowSeconds: 60 };
    await limits.take(policy, 'idle');
    await limits.take(policy, 'busy');
    await limits.sweep();
    await sql`update rate_limits set updated_at = now() - interval '61 minutes' where key like '%idle'`.execute(database.db);
    expect(await limits.sweep()).toBe(1);
    const left = await database.db.selectFrom('rate_limits').select('key').where('key', 'like', 'sweep%').execute();
    expect(left.map((row) => row.key)).toEqual(['sweep:busy']);
  });
});
