import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { connectPostgres } from '#shared/database/postgres.ts';
import { describeRateLimits } from '#shared/rate-limits/contract/rate-limits.ts';
import { createPostgresRateLimits } from '#shared/rate-limits/postgres-rate-limits.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';
import { createRandom } from '#test/support/random.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database?.close());

describeRateLimits('PostgreSQL', () => createPostgresRateLimits(database.db, Date.now));

describe('PostgreSQL rate limits', () => {
  it('grant, over four processes, exactly what the calls of the last window leave, and name the moment of the next', async () => {
    const seed = Math.floor(Math.random() * 2 ** 32);
    const random = createRandom(seed);
    const policy = { name: 'property', limit: 20, windowSeconds: 60 };
    const others = [1, 2, 3].map(() => connectPostgres(database.url, () => undefined, 4));
    let at = Date.parse('2026-03-01T12:00:00Z');
    const processes = [database.db, ...others.map(({ db }) => db)].map((db) => createPostgresRateLimits(db, () => at));
    const keys = ['ada', 'bob', 'eve'].map((name) => ({ name: `${name} ${seed}`, granted: [] as number[] }));
    try {
      for (let step = 0; step < 80; step += 1) {
        // Pauses that are shorter and longer than a window, and often end at its very edge.
        const edges = keys.flatMap(({ granted }) => granted.map((call) => call + 60_000 - at)).filter((wait) => wait > 0);
        at +=
          [0, 1, random(5000), random(70_000), edges[random(edges.length)] ?? 0, (edges[random(edges.length)] ?? 1) - 1][
            random(6)
          ] ?? 0;
        const calls = Array.from({ length: random(40) }, () => ({
          key: keys[random(3)] ?? keys[0],
          process: processes[random(4)] ?? processes[0],
        }));
        const verdicts = await Promise.all(
          calls.map(async ({ key, process }) => ({ key, verdict: await process?.take(policy, key?.name ?? '') })),
        );
        for (const key of keys) {
          const live = key.granted.filter((call) => call > at - 60_000);
          const own = verdicts.filter((each) => each.key === key).map(({ verdict }) => verdict);
          const granted = own.filter((verdict) => verdict?.granted).length;
          expect(granted, `step ${step} of seed ${seed}`).toBe(Math.min(own.length, 20 - live.length));
          key.granted = [...live, ...new Array<number>(granted).fill(at)];
          const refused = own.filter((verdict) => verdict?.granted === false);
          const next = (key.granted[0] ?? 0) + 60_000 - at;
          expect(new Set(refused.map((verdict) => verdict?.resetMilliseconds)), `step ${step} of seed ${seed}`).toEqual(
            new Set(refused.length === 0 ? [] : [next]),
          );
        }
      }
    } finally {
      await Promise.all(others.map((other) => other.close()));
    }
  });

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

  it('answer a wait after which the call is granted, by the clock of the database', async () => {
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
