import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { createLog } from '#shared/log.ts';
import { describeWakeups, forEver } from '#shared/wakeups/contract/wakeups.ts';
import { createPostgresWakeups, type PostgresWakeups } from '#shared/wakeups/postgres-wakeups.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

const log = createLog('silent', () => undefined);

const openWakeups = ({ url, pool }: TestDatabase): Promise<PostgresWakeups> =>
  createPostgresWakeups({ url, pool, clock: systemClock, log });

describeWakeups('of all processes on one database', async () => {
  const database = await createTestDatabase();
  const [one, other] = await Promise.all([openWakeups(database), openWakeups(database)]);
  return {
    one,
    other,
    close: async () => {
      await one.close();
      await other.close();
      await database.close();
    },
  };
});

describe('wakeups on a database that goes away', () => {
  const over = new AbortController();
  let database: TestDatabase;
  let one: PostgresWakeups;
  let other: PostgresWakeups;
  beforeAll(async () => {
    database = await createTestDatabase();
    [one, other] = await Promise.all([openWakeups(database), openWakeups(database)]);
  });
  afterAll(async () => {
    over.abort();
    await one.close();
    await other.close();
    await database.close();
  });

  const listeners = async (): Promise<number[]> => {
    const { rows } = await database.pool.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name = 'paas_wakeups' and datname = current_database()`,
    );
    return rows.map(({ pid }) => pid);
  };

  it('wake everybody once it is back, as what was said meanwhile was not heard, and are heard again', async () => {
    const waits = [one, other].map((wakeups) => wakeups.wait('missed', forEver, over.signal));
    for (const pid of await listeners()) await database.pool.query('select pg_terminate_backend($1)', [pid]);
    await Promise.all(waits);
    await expect.poll(listeners, { timeout: 20_000 }).toHaveLength(2);
    const wait = other.wait('again', forEver, over.signal);
    one.wake('again');
    await wait;
  });

  it('within the process need no database', async () => {
    const nowhere = await createPostgresWakeups({
      url: 'postgres://nobody@127.0.0.1:1/none',
      pool: { query: () => Promise.reject(new Error('away')) } as never,
      clock: systemClock,
      log,
    });
    const wait = nowhere.wait('here', forEver, over.signal);
    nowhere.wake('here');
    await expect(wait).resolves.toBeUndefined();
    await nowhere.close();
  });

  it('leave no connection behind', async () => {
    const third = await openWakeups(database);
    expect(await listeners()).toHaveLength(3);
    await third.close();
    await expect.poll(listeners, { timeout: 20_000 }).toHaveLength(2);
  });
});
