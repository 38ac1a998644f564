import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/clock.ts';
import { type AppId, newUuid } from '#shared/ids.ts';
import { createFakePlatform } from '#shared/platform/fake/fake-platform.ts';
import { refusePortsInTransactions } from '#test/support/core/refuse-ports-in-transactions.ts';
import { createTestDatabase, type TestDatabase } from '#test/support/database/test-database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());

it('refuses a port inside a transaction, also several calls deep, and nowhere else', async () => {
  const refused: string[] = [];
  const { db, platform } = refusePortsInTransactions(
    { db: database.db, platform: createFakePlatform({ clock: systemClock }) },
    (port) => refused.push(port),
  );
  const appId = newUuid<AppId>();
  const ask = async (): Promise<unknown> => {
    await systemClock.sleep(1);
    return platform.caches.ensureCache(appId);
  };
  await expect(ask()).resolves.toEqual({ state: 'created' });
  let later: Promise<unknown> | undefined;
  const inside = db.transaction().execute(async (trx) => {
    await trx.selectFrom('apps').select('id').execute();
    later = new Promise((resolve) => setTimeout(() => resolve(ask()), 200));
    await ask();
  });
  await expect(inside).rejects.toThrow('platform.caches.ensureCache was called inside a database transaction.');
  expect(refused).toEqual(['platform.caches.ensureCache']);
  await expect(later).resolves.toEqual({ state: 'existed' });
});
