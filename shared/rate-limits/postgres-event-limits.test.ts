import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectPostgres } from '#shared/database/postgres.ts';
import { describeEventLimits } from '#shared/rate-limits/contract/event-limits.ts';
import { createPostgresEventLimits } from '#shared/rate-limits/postgres-event-limits.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

describeEventLimits('PostgreSQL', () => createPostgresEventLimits(database.db));

describe('PostgreSQL event limits', () => {
  it('are shared by the processes on a database', async () => {
    const others = [1, 2, 3].map(() => connectPostgres(database.url, () => undefined, 4));
    const processes = [database.db, ...others.map(({ db }) => db)].map((each) => createPostgresEventLimits(each));
    const policy = { name: 'processes', limit: 30, windowSeconds: 60 };
    const calls = Array.from({ length: 80 }, (_, index) => processes[index % 4] ?? createPostgresEventLimits(database.db));
    const verdicts = await Promise.all(calls.map((limits) => limits.take(policy, 'an address')));
    await Promise.all(others.map((other) => other.close()));
    expect(verdicts.filter((verdict) => verdict.granted)).toHaveLength(30);
  });

  it('spare the database the events of a key that was refused', async () => {
    const limits = createPostgresEventLimits(database.db);
    const policy = { name: 'flood', limit: 1, windowSeconds: 60 };
    await limits.take(policy, 'an address');
    expect((await limits.take(policy, 'an address')).granted).toBe(false);
    await sql`delete from event_limits`.execute(database.db);
    expect((await limits.take(policy, 'an address')).granted).toBe(false);
  });

  it('count by themselves while the database cannot be reached', async () => {
    const gone = connectPostgres('postgres://nobody@127.0.0.1:1/none', () => undefined, 1);
    const limits = createPostgresEventLimits(gone.db);
    const policy = { name: 'outage', limit: 2, windowSeconds: 60 };
    const granted = [];
    for (let event = 1; event <= 4; event += 1) granted.push((await limits.take(policy, 'an address')).granted);
    await gone.close();
    expect(granted).toEqual([true, true, false, false]);
  });
});
